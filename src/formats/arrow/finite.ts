// Finds the first element that is no finite number, at the speed of memory.

/** Long enough that the branch after it costs nothing, short enough to find the element in it. */
const BLOCK = 4_096;

/** The index of the first NaN or infinity, or -1. */
export function findNotFinite(values: Float32Array): number {
  for (let start = 0; start < values.length; start += BLOCK) {
    const end = Math.min(start + BLOCK, values.length);
    if (isBlockFinite(values, start, end)) continue;
    for (let i = start; i < end; i++) if (!Number.isFinite(values[i])) return i;
  }
  return -1;
}

/** A finite number times 0 is 0, anything else NaN, which sums keep. Four sums run side by side. */
function isBlockFinite(values: Float32Array, start: number, end: number): boolean {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  let i = start;
  for (; i + 4 <= end; i += 4) {
    a += values[i]! * 0;
    b += values[i + 1]! * 0;
    c += values[i + 2]! * 0;
    d += values[i + 3]! * 0;
  }
  for (; i < end; i++) a += values[i]! * 0;
  return a + b + c + d === 0;
}
