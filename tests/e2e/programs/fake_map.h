/* tests/e2e/programs/fake_map.h: preprocessed into the version script of one fake libcudart. */
#include "fake_layers.h"
#define ENTRY(name, layer, record, contract, inspector) FAKE_##layer(name;)
NODE {
global:
#include "cudaspy/entrypoints.def"
FAKE_DRIVER(cuBrandNew; cuLooksItselfUp;)
local: *;
};
