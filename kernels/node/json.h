// The functions of the addon that read JSON.
#pragma once

#include <napi.h>

namespace sagitta::addon {

/**
 * cutVectors(bytes, {member, list, listMember, dimensionMax, isLines, room}): `json::vectors` as typed arrays
 * of their own, or null. If the values have room, they are there instead, and `valueCount` says how many.
 */
Napi::Value cut_vectors(const Napi::CallbackInfo& info);

}  // namespace sagitta::addon
