// Random changes of bytes that decoders read: flipped bits, other bytes, truncation, numbers at the bounds of their
// types at aligned offsets, and parts of other inputs.

/** A random number from 0 to below `bound`. */
type Below = (bound: number) => number;

/** May change the bytes in place. `others` are inputs from which parts are taken. */
export function mutateBytes(bytes: Buffer, below: Below, others: readonly Uint8Array[]): Buffer {
  const at = below(bytes.length);
  switch (below(6)) {
    case 0:
      bytes[at]! ^= 1 << below(8);
      return bytes;
    case 1:
      bytes[at] = below(256);
      return bytes;
    case 2:
      return bytes.subarray(0, at);
    case 3: {
      const values = [-1, 0, 1, 0x7fffffff, -0x80000000, 65_536, below(100_000)];
      if (bytes.length >= 4)
        bytes.writeInt32LE(values[below(values.length)]!, (at & ~3) % (bytes.length - 3));
      return bytes;
    }
    case 4: {
      const values = [-1n, 0n, 2n ** 62n, 2n ** 33n, 1_000_000n, BigInt(below(1_000))];
      if (bytes.length >= 8)
        bytes.writeBigInt64LE(values[below(values.length)]!, (at & ~7) % (bytes.length - 7));
      return bytes;
    }
    default: {
      const other = others[below(others.length)]!;
      const from = below(other.length);
      const count = below(200);
      const rest = bytes.subarray(Math.min(bytes.length, at + below(2) * count));
      return Buffer.concat([bytes.subarray(0, at), other.subarray(from, from + count), rest]);
    }
  }
}
