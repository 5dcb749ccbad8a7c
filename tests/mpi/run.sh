#!/bin/bash
# Run the MPI collectives on several numbers of processes, the ways in which a rank can be lost, and
# the ways in which ranks can go apart. Usage: run.sh MPIRUN PROGRAM
. "$(dirname "$0")/job.sh"
mpirun=$1 program=$2

for ranks in 1 2 3 5; do
    timeout 60 "$mpirun" -np $ranks "$program"
done
TRIREME_COMM_CHECK=1 timeout 60 "$mpirun" -np 3 "$program"

# ends MODE COUNT PATTERN: the job of three ends with an error, and so many lines say the pattern.
ends() {
    local text said
    if text=$(timeout 30 "$mpirun" -np 3 "$program" "$1" 2>&1); then
        echo "$1 must end the job with an error"
        exit 1
    fi
    said=$(grep -c -E "$3" <<<"$text" || true)
    if [ "$said" -lt "$2" ]; then
        echo "$1: $said lines say '$3', $2 must:"
        echo "$text"
        exit 1
    fi
}

# A failing rank: all end, within the deadline, and all name it.
for way in fail late; do
    ends $way 2 'heard of it|did not wait'
done
ends absent 1 'rank [01] waited 1 s in MPI_Init: the ranks do not reach each other'
ends lost 1 'rank [02] waited 3 s in split: a peer is gone or stuck'
echo "ranks that fail or are late end the job everywhere"

# Calls that do not fit: the debug mode has both, and who made them.
apart() { # MODE CALL-OF-RANK-1 CALL-OF-ANOTHER
    ends "$1" 1 "ranks went apart: rank ([02] is in $3, rank 1 in $2|1 is in $2, rank [02] in $3)"
}
apart call 'all-reduce of 4 float64 \(sum\)' 'broadcast of 32 bytes of member 0'
apart size 'all-reduce of 3 float64 \(sum\)' 'all-reduce of 4 float64 \(sum\)'
apart dtype 'all-reduce of 4 float32 \(sum\)' 'all-reduce of 4 float64 \(sum\)'
apart root 'broadcast of 32 bytes of member 1' 'broadcast of 32 bytes of member 0'
apart group 'all-reduce of 1 int64 \(greatest\)' 'all-reduce of 1 int64 \(sum\)'
apart end 'the end' 'all-reduce of 1 int64 \(sum\)'
ends blocks 1 'part 0: member 0 sends 1 rows of 8 bytes, member 1 expects 1 of 4'
echo "ranks that go apart are told so by the debug mode"
