// The functions of the addon that read JSON.
#pragma once

#include <napi.h>

namespace sagitta::addon {

/**
 * cutVectors(bytes, member, list, listMember, dimensionMax, isLines, room): the result of `json::cut_vectors` as
 * [rest, lengths, value count, values] in new typed arrays, or null. If the values fit into `room`, they are there
 * instead.
 */
Napi::Value cut_vectors(const Napi::CallbackInfo& info);

}  // namespace sagitta::addon
