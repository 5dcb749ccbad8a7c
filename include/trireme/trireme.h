/* Trireme: trains Hugging Face language models on very long sequences.
 *
 * This is the public API (0.x: it may still change). Everything else under src/ is private.
 */
#ifndef TRIREME_TRIREME_H
#define TRIREME_TRIREME_H

#include "trireme/adapter.h"
#include "trireme/comm.h"
#include "trireme/device.h"
#include "trireme/lm.h"
#include "trireme/loss.h"
#include "trireme/mesh.h"
#include "trireme/sp.h"
#include "trireme/status.h"
#include "trireme/tensor.h"
#include "trireme/tiled.h"

#define TRI_VERSION_MAJOR 0
#define TRI_VERSION_MINOR 1
#define TRI_VERSION_PATCH 0
#define TRI_VERSION       "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library that is linked, such as "0.1.0". */
const char *tri_version(void);

#ifdef __cplusplus
}
#endif

#endif
