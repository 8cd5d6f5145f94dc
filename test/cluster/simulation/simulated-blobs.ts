// The shared files as a node sees them: they take time, and fail or do not answer during a fault. A write that fails may
// have taken effect.

import type { Blobs, ByteRange } from '../../../src/cluster/blobs/blobs.js';
import type { Dice } from './dice.js';
import type { Network } from './network.js';
import type { Scheduler, SimProcess } from './scheduler.js';

const MS_MIN = 1;
const MS_MAX = 30;
/** How long a request waits for an answer. */
const REQUEST_MS_MAX = 15_000;
const FAILURE_CHANCE = 0.5;
const SILENCE_CHANCE = 0.2;

/** The machine of the shared files in the network. */
export const BLOBS = 'blobs';

export class BlobFaults {
  isFailing = false;
}

export class SimulatedBlobs implements Blobs {
  readonly #blobs: Blobs;
  readonly #faults: BlobFaults;
  readonly #scheduler: Scheduler;
  readonly #network: Network;
  readonly #process: SimProcess;
  readonly #dice: Dice;

  constructor(options: {
    readonly blobs: Blobs;
    readonly faults: BlobFaults;
    readonly scheduler: Scheduler;
    readonly network: Network;
    readonly process: SimProcess;
  }) {
    this.#blobs = options.blobs;
    this.#faults = options.faults;
    this.#scheduler = options.scheduler;
    this.#network = options.network;
    this.#process = options.process;
    this.#dice = options.process.dice.for('blobs');
  }

  async put(name: string, parts: readonly Uint8Array[], signal?: AbortSignal): Promise<void> {
    await this.#request(() => this.#blobs.put(name, parts), signal);
  }

  async get(
    name: string,
    range?: ByteRange,
    signal?: AbortSignal,
  ): Promise<Uint8Array | undefined> {
    return await this.#request(() => this.#blobs.get(name, range), signal);
  }

  async *list(prefix: string, signal?: AbortSignal): AsyncIterable<string> {
    const names = await this.#request(async () => {
      const found: string[] = [];
      for await (const name of this.#blobs.list(prefix)) found.push(name);
      return found;
    }, signal);
    yield* names;
  }

  async remove(name: string, signal?: AbortSignal): Promise<void> {
    await this.#request(() => this.#blobs.remove(name), signal);
  }

  async #request<Result>(use: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    await this.#pause(this.#dice.between(MS_MIN, MS_MAX), signal);
    await this.#mayFail(signal);
    const result = await use();
    await this.#pause(this.#dice.between(MS_MIN, MS_MAX), signal);
    await this.#mayFail(signal);
    return result;
  }

  async #mayFail(signal: AbortSignal | undefined): Promise<void> {
    const { name } = this.#process.machine;
    const isCut = !this.#network.isUp(name, BLOBS) || !this.#network.isUp(BLOBS, name);
    const isSilent = isCut || (this.#faults.isFailing && this.#dice.chance(SILENCE_CHANCE));
    if (isSilent) await this.#pause(REQUEST_MS_MAX, signal);
    if (isSilent || (this.#faults.isFailing && this.#dice.chance(FAILURE_CHANCE))) {
      throw new Error('the shared files did not answer');
    }
  }

  async #pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    await this.#scheduler.sleep(ms);
    signal?.throwIfAborted();
  }
}
