#include "basis.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <numbers>
#include <vector>

namespace sagitta {
namespace {

constexpr char basis_magic[8] = {'s', 'g', 'b', 'a', 's', 'i', 's', '1'};
/** Weights and units outside these limits would take the bounds beyond the range of float32. */
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
double projection_error(uint32_t dimension, uint32_t row_count) {
  const double roundings = 66 + dimension / 64.0;
  return roundings * unit_roundoff * std::sqrt(static_cast<double>(row_count)) * (1 + 0x1p-8);
}

}  // namespace

bool open_basis(const uint8_t* bytes, size_t byte_count, uint32_t dimension, basis& opened) {
  if (bytes == nullptr || byte_count < sizeof(basis_header)) return false;
  if (reinterpret_cast<uintptr_t>(bytes) % alignof(basis_header) != 0) return false;
  basis_header header;
  std::memcpy(&header, bytes, sizeof header);
  if (std::memcmp(header.magic, basis_magic, sizeof basis_magic) != 0) return false;
  if (header.dimension != dimension || !has_basis(dimension)) return false;
  const uint32_t code_count = head_code_count(dimension);
  if (header.row_count > code_count || header.fine_count > header.row_count) return false;
  if (header.row_count + header.fine_count != code_count) return false;
  if (byte_count != basis_bytes(dimension, header.row_count)) return false;
  if (!(header.deviation >= 0 && header.deviation <= deviation_max)) return false;
  if (!are_within(header.shares.left, 2, 0, 1) || !are_within(header.shares.fractions, 2, 0, 1)) return false;
  if (!are_within(header.tile_shares.left, 2, 0, 1)) return false;
  if (!are_within(header.tile_shares.fractions, 2, 0, 1)) return false;
  if (!are_within(header.tile_weights, head_tile_levels, least_weight, 1)) return false;
  const auto* const numbers = reinterpret_cast<const float*>(bytes + sizeof(basis_header));
  opened.header = reinterpret_cast<const basis_header*>(bytes);
  opened.units = numbers;
  opened.weights = numbers + header.row_count;
  opened.matrix = numbers + size_t{2} * header.row_count;
  opened.dimension = dimension;
  opened.row_count = header.row_count;
  opened.fine_count = header.fine_count;
  opened.code_count = code_count;
  if (!are_within(opened.weights, header.row_count, least_weight, 1)) return false;
  if (!are_within(&header.rest_weight, 1, least_weight, 1)) return false;
  if (!are_within(opened.units, header.row_count, least_weight, 1)) return false;
  double largest = head_code_max * least_head_scale;
  double square = 0;
  for (uint32_t i = 0; i < header.row_count; i++) {
    const double unit = static_cast<double>(opened.units[i]);
    largest = std::max(largest, i < header.fine_count ? 4 * unit : unit);
    square += static_cast<double>(opened.weights[i]) * unit * unit;
  }
  const double codes = std::sqrt(static_cast<double>(code_count));
  opened.rounding = codes / 2 * largest / head_code_max * (1 + 2 * header.deviation + 0x1p-20);
  opened.error = projection_error(dimension, header.row_count) + 2 * header.deviation + 0x1p-20;
  const uint32_t directions = head_tile_directions(dimension);
  // What the entries of the mixing matrix are rounded by is below 2^-18.
  opened.tile_error = opened.error + projection_error(directions / 2, directions) + 0x1p-17;
  // Otherwise what the rounding of a query adds to a residual could exceed the length of the row; see bounds.h.
  return opened.rounding * 6 * codes <= std::sqrt(square);
}

size_t seal_basis(basis_header header, uint8_t* bytes) {
  const size_t byte_count = basis_bytes(header.dimension, header.row_count);
  std::memcpy(header.magic, basis_magic, sizeof basis_magic);
  std::memcpy(bytes, &header, sizeof header);
  const uint64_t digest = digest_of(bytes + digested_from, byte_count - digested_from);
  std::memcpy(bytes + offsetof(basis_header, digest), &digest, sizeof digest);
  return byte_count;
}

const float* mixing_of(uint32_t count) {
  constexpr uint32_t count_max = head_tile_directions(basis_dimension_max) / 2;
  static std::mutex mutex;
  static std::unique_ptr<std::vector<float>> known[count_max + 1];
  const std::lock_guard lock(mutex);
  if (known[count] == nullptr) {
    const double unit = std::sqrt(2.0 / count);
    auto made = std::make_unique<std::vector<float>>(size_t{count} * count);
    for (uint32_t i = 0; i < count; i++) {
      for (uint32_t j = 0; j < count; j++) {
        const double angle = std::numbers::pi / count * (i + 0.5) * (j + 0.5);
        (*made)[size_t{i} * count + j] = static_cast<float>(unit * std::cos(angle));
      }
    }
    known[count] = std::move(made);
  }
  return known[count]->data();
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
