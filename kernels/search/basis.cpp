#include "basis.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sagitta {
namespace {

constexpr char basis_magic[8] = {'s', 'g', 'b', 'a', 's', 'i', 's', '3'};
/** Smaller weights would take the bounds beyond the range of float32. */
constexpr float least_weight = 0x1p-20f;
constexpr double deviation_max = 1e-3;
constexpr size_t digested_from = offsetof(basis_header, digest) + sizeof(uint64_t);
constexpr double unit_roundoff = 0x1p-24;

/** FNV-1a over 64-bit words, with the finalizer of SplitMix64 for each. */
uint64_t digest_of(const uint8_t* bytes, size_t count) {
  uint64_t digest = 0xcbf29ce484222325ull ^ count;
  for (size_t at = 0; at < count; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(sizeof word, count - at));
    digest = (digest ^ word) * 0x9e3779b97f4a7c15ull;
    digest ^= digest >> 29;
  }
  return digest;
}

bool are_within(const float* values, uint32_t count, float least, float most) {
  return std::all_of(values, values + count,
                     [&](float value) { return value >= least && value <= most; });
}

/**
 * Bounds |y − H·x| / |x| for the order of summation of target::project: at most 64 roundings in a block, and one per
 * block of 64.
 */
double projection_error(uint32_t dimension, uint32_t directions) {
  const double roundings = 66 + dimension / 64.0;
  return roundings * unit_roundoff * std::sqrt(static_cast<double>(directions)) * (1 + 0x1p-8);
}

}  // namespace

bool open_basis(const uint8_t* bytes, size_t byte_count, uint32_t dimension, basis& opened) {
  if (bytes == nullptr || !has_basis(dimension) || byte_count != basis_bytes(dimension)) return false;
  if (reinterpret_cast<uintptr_t>(bytes) % alignof(basis_header) != 0) return false;
  basis_header header;
  std::memcpy(&header, bytes, sizeof header);
  if (std::memcmp(header.magic, basis_magic, sizeof basis_magic) != 0) return false;
  if (header.dimension != dimension) return false;
  if (!(header.deviation >= 0 && header.deviation <= deviation_max)) return false;
  for (const basis_shares& shares : header.shares) {
    if (!are_within(shares.left, 2, 0, 1) || !are_within(shares.fractions, 2, 0, 1)) return false;
  }
  if (!are_within(header.weights, head_levels, least_weight, 1)) return false;
  opened.header = reinterpret_cast<const basis_header*>(bytes);
  opened.matrix = reinterpret_cast<const float*>(bytes + sizeof(basis_header));
  opened.dimension = dimension;
  opened.directions = head_directions(dimension);
  opened.error = projection_error(dimension, opened.directions) + 2 * header.deviation + 0x1p-20;
  return true;
}

size_t seal_basis(basis_header header, uint8_t* bytes) {
  const size_t byte_count = basis_bytes(header.dimension);
  std::memcpy(header.magic, basis_magic, sizeof basis_magic);
  std::memcpy(bytes, &header, sizeof header);
  const uint64_t digest = digest_of(bytes + digested_from, byte_count - digested_from);
  std::memcpy(bytes + offsetof(basis_header, digest), &digest, sizeof digest);
  return byte_count;
}

head_arrays head_arrays_of(uint8_t* head, size_t byte_count) { return {head, head + byte_count / 2}; }

head_scan head_scan_of(const uint8_t* head, size_t byte_count, uint32_t level) {
  const uint8_t* const second = head + byte_count / 2;
  if (level > 0) return {head, {head + fact_bytes, nullptr}};
  return {second, {head + fact_bytes, second + fact_bytes}};
}

void join_head_panels(const uint8_t* head, size_t byte_count, uint32_t dimension, uint32_t first_panel,
                      uint32_t count, uint8_t* to) {
  const size_t stride = half_panel_bytes(dimension);
  const size_t code_bytes = stride - fact_bytes;
  for (uint32_t panel = first_panel; panel < first_panel + count; panel++) {
    const uint8_t* const first = head + panel * stride;
    const uint8_t* const second = first + byte_count / 2;
    std::memcpy(to, second, fact_bytes);
    std::memcpy(to + fact_bytes, first, stride);
    std::memcpy(to + fact_bytes + stride, second + fact_bytes, code_bytes);
    to += 2 * stride;
  }
}

bool has_same_digest(const uint8_t* left, const uint8_t* right) {
  constexpr size_t at = offsetof(basis_header, digest);
  return left == right || std::memcmp(left + at, right + at, sizeof(uint64_t)) == 0;
}

/** Between and beyond the two known fractions, the logarithm of the share is linear in that of the fraction. */
double expected_left(const basis_shares& shares, double fraction) {
  const auto at = [](float value) { return std::max(static_cast<double>(value), 1e-9); };
  const double width = std::log(at(shares.fractions[1]) / at(shares.fractions[0]));
  const double slope = std::log(at(shares.left[1]) / at(shares.left[0])) / std::max(width, 0.1);
  const double left = at(shares.left[0]) * std::pow(fraction / at(shares.fractions[0]), std::clamp(slope, 0.0, 4.0));
  return std::clamp(left, 0.0, 1.0);
}

bool has_true_digest(const uint8_t* bytes, size_t byte_count) {
  if (byte_count < sizeof(basis_header)) return false;
  uint64_t digest = 0;
  std::memcpy(&digest, bytes + offsetof(basis_header, digest), sizeof digest);
  return digest == digest_of(bytes + digested_from, byte_count - digested_from);
}

}  // namespace sagitta
