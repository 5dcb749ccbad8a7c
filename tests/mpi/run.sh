#!/bin/bash
# Run the MPI collectives on several numbers of processes, and the two ways in which a rank can be
# lost. Usage: run.sh MPIRUN PROGRAM
. "$(dirname "$0")/job.sh"

for ranks in 1 2 3 5; do
    timeout 60 "$1" -np $ranks "$2"
done

# A failing rank: all end, within the deadline, and all name it.
for way in fail late; do
    if text=$(timeout 30 "$1" -np 3 "$2" $way 2>&1); then
        echo "a lost rank ($way) must end the job with an error"
        exit 1
    fi
    said=$(grep -c -E 'heard of it|did not wait' <<<"$text" || true)
    if [ "$said" -lt 2 ]; then
        echo "$way: $said ranks said so, 2 must:"
        echo "$text"
        exit 1
    fi
done
echo "ranks that fail or are late end the job everywhere"
