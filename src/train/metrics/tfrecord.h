/* TFRecord, the framing of TensorBoard's files: length, its checksum, data, its checksum. */
#ifndef TRI_TRAIN_METRICS_TFRECORD_H
#define TRI_TRAIN_METRICS_TFRECORD_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* CRC-32C (Castagnoli) of the bytes. */
uint32_t tri_crc32c(const void *data, size_t bytes);

/* Append one record that holds `bytes` bytes. */
void tri_tfrecord_add(struct tri_text *out, const void *data, size_t bytes);

#endif
