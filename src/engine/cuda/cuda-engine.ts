// The `cuda` engine: a certified int8 scan on GPUs, over copies of the codes that its fallback makes.
// Each block is on one device; what no device has in time, cannot decide or fails to answer, the
// fallback answers, so that users see a slower answer and never an error.

import { assert } from '../../common/errors.js';
import type { RowEncoder } from '../../common/types.js';
import { type Engine, EngineAbsent, type SearchHits, type SearchQuery } from '../core/engine.js';
import { mergeHits, type PartialHits, type SearchOptions } from '../core/per-block.js';
import { cutForKernels, packColumns, sliceHits } from '../simd/kernel-batch.js';
import { type ConnectDevice, CudaDevice, type CudaEvent, connectThread } from './cuda-device.js';
import { type CudaKernels, type DeviceFacts, loadCudaKernels } from './cuda-kernels.js';
import { CudaResidency, type Holding } from './cuda-residency.js';

/** What one search on a device may be: it keeps candidates for every hit that is asked for. */
const BATCH_BOUNDS = { hitsMax: 2 ** 20, valuesMax: 2 ** 21, viewsMax: 2 ** 18 };

/** What was used within so many milliseconds is not driven out by what is asked for now. */
const IDLE_MS = 10_000;
/** Before a device that failed is tried again; after the last of them it is not. */
const PAUSES_MS = [1_000, 15_000];

export interface CudaEngineOptions {
  /** Makes the codes, and answers what the devices cannot; closed with the engine. */
  readonly fallback: Engine;
  /** Bytes on each device; null for what is free, but for a reserve. */
  readonly deviceMemory?: number | null;
  /** Numbers of the devices to use; all that there are unless told otherwise. */
  readonly devices?: readonly number[];
  /** Of the native addon. */
  readonly addonPath?: string;
  /** Null for the fastest that each device has. */
  readonly kernelsName?: string | null;
  readonly onEvent?: (event: CudaEvent) => void;
  /** For tests: kernels of their own, threads of their own, and time. */
  readonly kernels?: Pick<CudaKernels, 'deviceCount' | 'blockBytes'>;
  readonly connect?: ConnectDevice;
  readonly now?: () => number;
  readonly idleMs?: number;
  readonly pausesMs?: readonly number[];
}

export interface CudaStats {
  /** Queries of which some part was answered by the fallback, for whatever reason. */
  readonly fallbackQueryCount: number;
  /** Of these, those that a device searched and could not decide. */
  readonly undecidedQueryCount: number;
  readonly uploadedBytes: number;
  readonly deviceBytes: number;
  /** How often a device was lost. */
  readonly lossCount: number;
}

export interface CudaEngine extends Engine {
  stats(): CudaStats;
  /** The devices in use, in words for an operator. */
  describe(): string;
}

/** Rejects with `EngineAbsent` without the addon or a device, and otherwise when no device opens. */
export async function createCudaEngine(options: CudaEngineOptions): Promise<CudaEngine> {
  const { kernels, indexes } = findCudaDevices(options);
  const early: CudaEvent[] = [];
  let tell = (event: CudaEvent): void => {
    early.push(event);
  };
  const now = options.now ?? (() => performance.now());
  const addonPath = options.addonPath ?? null;
  const kernelsName = options.kernelsName ?? null;
  const devices = indexes.map(
    (index) =>
      new CudaDevice({
        index,
        connect: options.connect ?? connectThread({ addonPath, kernelsName }),
        deviceMemory: options.deviceMemory ?? null,
        blockBytes: kernels.blockBytes,
        onEvent: (event) => tell(event),
        now,
        idleMs: options.idleMs ?? IDLE_MS,
        pausesMs: options.pausesMs ?? PAUSES_MS,
      }),
  );
  const starts = await Promise.allSettled(devices.map((device) => device.start()));
  const failure = starts.find(({ status }) => status === 'rejected');
  if (failure?.status === 'rejected' && starts.every(({ status }) => status === 'rejected')) {
    throw failure.reason;
  }
  tell = options.onEvent ?? (() => {});
  for (const event of early) tell(event);
  return new DevicesEngine(options.fallback, devices, kernels.blockBytes);
}

/** Throws `EngineAbsent`, in words for an operator, without the addon, the driver or a device. */
export function findCudaDevices({
  kernels: given,
  addonPath,
  devices,
}: Pick<CudaEngineOptions, 'kernels' | 'addonPath' | 'devices'>) {
  try {
    const kernels =
      given ?? (addonPath === undefined ? loadCudaKernels() : loadCudaKernels(addonPath));
    const count = kernels.deviceCount();
    if (count === 0) throw new Error('there is no NVIDIA GPU');
    return { kernels, indexes: devices ?? Array.from({ length: count }, (_, index) => index) };
  } catch (error) {
    throw new EngineAbsent(error instanceof Error ? error.message : String(error));
  }
}

/** Queries for one device, or for the fallback, each with the parts that are there. */
interface Share {
  /** Null for the fallback. */
  readonly device: CudaDevice | null;
  readonly queries: SearchQuery[];
  /** Of each: which of the batch it is, and which parts it has. */
  readonly places: { readonly query: number; readonly parts: number[] }[];
}

type Answered = (place: Share['places'][number], hits: SearchHits) => void;

class DevicesEngine implements CudaEngine {
  readonly name = 'cuda';
  readonly rowEncoder: RowEncoder | null;
  readonly #fallback: Engine;
  readonly #devices: readonly CudaDevice[];
  readonly #residency: CudaResidency;
  readonly #running = new Set<Promise<unknown>>();
  #fallbackQueryCount = 0;
  #undecidedQueryCount = 0;
  #isClosed = false;

  constructor(
    fallback: Engine,
    devices: readonly CudaDevice[],
    blockBytes: CudaKernels['blockBytes'],
  ) {
    this.rowEncoder = fallback.rowEncoder;
    this.#fallback = fallback;
    this.#devices = devices;
    this.#residency = new CudaResidency(devices, blockBytes);
  }

  async search(
    queries: readonly SearchQuery[],
    options: SearchOptions = {},
  ): Promise<SearchHits[]> {
    assert(!this.#isClosed, 'an engine is not used after it is closed');
    options.signal?.throwIfAborted();
    const answer = this.#search(queries, options);
    this.#running.add(answer);
    try {
      return await answer;
    } finally {
      this.#running.delete(answer);
    }
  }

  unload(key: string): void {
    this.#residency.forget(key);
    this.#fallback.unload(key);
  }

  bytesUsed(key: string) {
    const { hostBytes } = this.#fallback.bytesUsed(key);
    return { hostBytes, deviceBytes: this.#residency.find(key)?.bytes ?? 0 };
  }

  stats(): CudaStats {
    let uploadedBytes = 0;
    let deviceBytes = 0;
    let lossCount = 0;
    for (const device of this.#devices) {
      uploadedBytes += device.uploadedBytes;
      deviceBytes += device.placement?.usedBytes ?? 0;
      lossCount += device.lossCount;
    }
    const fallbackQueryCount = this.#fallbackQueryCount;
    const undecidedQueryCount = this.#undecidedQueryCount;
    return { fallbackQueryCount, undecidedQueryCount, uploadedBytes, deviceBytes, lossCount };
  }

  describe(): string {
    return this.#devices
      .flatMap(({ facts, placement }) =>
        facts === null || placement === null ? [] : [describeDevice(facts, placement.budgetBytes)],
      )
      .join(', ');
  }

  /** Searches under way are answered by the fallback. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#devices.map((device) => device.close()));
    await Promise.allSettled(this.#running);
    await this.#fallback.close();
  }

  async #search(queries: readonly SearchQuery[], options: SearchOptions): Promise<SearchHits[]> {
    const { signal } = options;
    const abandoned = new Int32Array(new SharedArrayBuffer(4));
    const abandon = () => Atomics.store(abandoned, 0, 1);
    signal?.addEventListener('abort', abandon);
    const holding = await this.#residency.acquire(queries);
    try {
      signal?.throwIfAborted();
      const partials = queries.map((): PartialHits[] => []);
      const onAnswered: Answered = ({ query, parts }, hits) => {
        for (let i = 0; i < hits.viewIndexes.length; i++)
          hits.viewIndexes[i] = parts[hits.viewIndexes[i]!]!;
        partials[query]!.push(hits);
      };
      const shares = splitByDevice(queries, holding);
      const searches = shares.map((share) =>
        share.device === null
          ? this.#askFallback(share, options, onAnswered)
          : this.#askDevice(share, share.device, holding, { abandoned, options, onAnswered }),
      );
      // Blocks are held until the last of them is done, whatever becomes of the others.
      const failed = (await Promise.allSettled(searches)).find((one) => one.status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
      return queries.map((query, index) => mergeHits(query, partials[index]!));
    } finally {
      signal?.removeEventListener('abort', abandon);
      holding.release();
    }
  }

  async #askDevice(
    { queries, places }: Share,
    device: CudaDevice,
    holding: Holding,
    {
      abandoned,
      options,
      onAnswered,
    }: {
      abandoned: Int32Array;
      options: SearchOptions;
      onAnswered: Answered;
    },
  ): Promise<void> {
    const rest: Share = { device: null, queries: [], places: [] };
    for (const { dimension, places: slice } of cutForKernels(queries, BATCH_BOUNDS)) {
      options.signal?.throwIfAborted();
      const batch = packColumns(
        slice.map((index) => queries[index]!),
        dimension,
      );
      const residents = batch.blocks.map(({ key }) => holding.placeOf(key)?.resident ?? null);
      // The device may have been lost since the queries were dealt.
      const answer = residents.every((resident) => resident !== null)
        ? await device.search(batch, residents, abandoned)
        : null;
      for (const [i, index] of slice.entries()) {
        if (answer?.isDecided[i] === 1) {
          onAnswered(places[index]!, sliceHits(answer, i));
        } else {
          if (answer !== null) this.#undecidedQueryCount++;
          rest.queries.push(queries[index]!);
          rest.places.push(places[index]!);
        }
      }
    }
    options.signal?.throwIfAborted();
    if (rest.queries.length > 0) await this.#askFallback(rest, options, onAnswered);
  }

  async #askFallback(
    { queries, places }: Share,
    options: SearchOptions,
    onAnswered: Answered,
  ): Promise<void> {
    this.#fallbackQueryCount += queries.length;
    const hits = await this.#fallback.search(queries, options);
    for (const [index, place] of places.entries()) onAnswered(place, hits[index]!);
  }
}

/** Parts without rows are left out: nobody has anything to say about them. */
function splitByDevice(queries: readonly SearchQuery[], holding: Holding): Share[] {
  const shares = new Map<CudaDevice | null, Share>();
  for (const [query, { views: parts, ...rest }] of queries.entries()) {
    const dealt = new Map<CudaDevice | null, number[]>();
    for (const [part, { block, rowCount }] of parts.entries()) {
      if (rowCount === 0) continue;
      const device = holding.placeOf(block.key)?.device ?? null;
      const places = dealt.get(device);
      if (places === undefined) dealt.set(device, [part]);
      else places.push(part);
    }
    for (const [device, places] of dealt) {
      const share = shares.get(device) ?? { device, queries: [], places: [] };
      shares.set(device, share);
      share.queries.push({ ...rest, views: places.map((part) => parts[part]!) });
      share.places.push({ query, parts: places });
    }
  }
  return [...shares.values()];
}

function describeDevice({ name, kernels, runtimeVersion }: DeviceFacts, bytes: number): string {
  const gibibytes = (bytes / 1024 ** 3).toFixed(1);
  const version = `${Math.floor(runtimeVersion / 1000)}.${Math.floor((runtimeVersion % 1000) / 10)}`;
  return `${kernels} kernels on ${name} with ${gibibytes} GiB for vectors (CUDA ${version})`;
}
