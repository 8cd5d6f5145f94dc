// A source of blocks for tests. It makes the content of a blob from its name, and can be made to fail from any thread.

import { BLOCK_BYTES, bytesOfBlock } from '../../src/platform/blocks.js';

/** What reads do; the index is shared with sources in other threads. */
const BEHAVIOURS = ['work', 'fail', 'short', 'hang'] as const;

export class SourceControl {
  /** The behaviour, the number of reads that still have it, and the number of all reads. */
  readonly shared: Int32Array<SharedArrayBuffer>;

  constructor(shared = new Int32Array(new SharedArrayBuffer(12))) {
    this.shared = shared;
  }

  /** `count` reads behave like this before all work again; by default, all of them. */
  behave(behaviour: (typeof BEHAVIOURS)[number], count = 1_000_000_000): void {
    Atomics.store(this.shared, 1, count);
    Atomics.store(this.shared, 0, BEHAVIOURS.indexOf(behaviour));
  }

  get readCount(): number {
    return Atomics.load(this.shared, 2);
  }

  async read(bytes: Uint8Array): Promise<Uint8Array> {
    Atomics.add(this.shared, 2, 1);
    const behaviour = BEHAVIOURS[Atomics.load(this.shared, 0)];
    if (behaviour === 'work' || Atomics.sub(this.shared, 1, 1) <= 0) return bytes;
    if (behaviour === 'hang') return new Promise(() => {});
    if (behaviour === 'short') return bytes.subarray(1);
    throw new Error('the source is down');
  }
}

/** The 32-bit number at an index of the blob with this seed. */
export function wordAt(seed: number, index: number): number {
  const mixed = Math.imul(index ^ seed, 0x9e37_79b1);
  return (mixed ^ (mixed >>> 15)) | 0;
}

/** A name that says what the blob contains. */
export function sourceName(seed: number, byteLength: number): string {
  return `${seed}:${byteLength}`;
}

export function makeBlock(name: string, block: number): Uint8Array {
  const [seed, byteLength] = name.split(':').map(Number) as [number, number];
  const words = new Int32Array(BLOCK_BYTES / 4);
  const first = block * words.length;
  for (let i = 0; i < words.length; i++) words[i] = wordAt(seed, first + i);
  return new Uint8Array(words.buffer, 0, bytesOfBlock(byteLength, block));
}

/** @param shared of the control. */
export function openBlockSource(shared: Int32Array<SharedArrayBuffer>) {
  const control = new SourceControl(shared);
  return { read: (name: string, block: number) => control.read(makeBlock(name, block)) };
}
