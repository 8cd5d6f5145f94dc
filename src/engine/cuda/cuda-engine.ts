// The `cuda` engine: an int8 scan with proven bounds on GPUs, over copies of the codes that its fallback makes.
// Each block is on one device. The fallback searches blocks that are not on a device in time and queries that a
// device cannot decide or fails to answer, so users see slower answers, never errors.

import { assert } from '../../common/errors.js';
import type { RowEncoder } from '../../common/types.js';
import { whenAborted } from '../../common/when-aborted.js';
import {
  type Batching,
  type BlockView,
  type Engine,
  EngineUnavailable,
  type SearchHits,
  type SearchOptions,
  type SearchQuery,
} from '../core/engine.js';
import { cutForKernels, memoizeByViews, packColumns, sliceHits } from '../core/kernel-batch.js';
import { mergeHits, type PartialHits } from '../core/per-block.js';
import { CudaDevice, type CudaEvent } from './cuda-device.js';
import { type CudaKernels, type DeviceFacts, loadCudaAddon } from './cuda-kernels.js';
import {
  type ConnectDevice,
  connectProcess,
  listDevices,
  type ProcessOptions,
} from './cuda-link.js';
import { CudaResidency, type PinnedBlocks } from './cuda-residency.js';

/** Limits of one search on a device, which keeps candidates for every hit. */
const BATCH_BOUNDS = {
  hitsMax: 2 ** 20,
  valuesMax: 2 ** 23,
  viewsMax: 2 ** 18,
  plansSharedViewsOnce: true,
};

/**
 * A device searches as many queries at once as its kernels put into a slice. The host prepares the next batch and
 * unpacks the last one meanwhile. Below 128 queries the codes that are read bound a scan, so that two batches would
 * take longer than one of both.
 */
const BATCHING: Batching = {
  queriesMax: 4_096,
  groupQueriesMax: 1_024,
  hitsMax: 2 ** 18,
  inFlightMax: 2,
  aheadQueriesMin: 128,
};

/** Blocks used within this time are not evicted for others. */
const IDLE_MS = 10_000;
/**
 * The pauses before a failed device is retried; after the last one it is given up. Each attempt has a clean
 * context, and may delay a batch until a hung call is noticed.
 */
const PAUSES_MS = [1_000, 15_000, 120_000, 900_000];

export interface CudaEngineOptions extends ProcessOptions {
  /** Makes the codes and answers when the devices cannot; closed with the engine. */
  readonly fallback: Engine;
  /** Bytes to use on each device; null for the free memory minus a reserve. */
  readonly deviceMemory?: number | null;
  /** Indexes of the devices to use; all by default. */
  readonly devices?: readonly number[];
  readonly onEvent?: (event: CudaEvent) => void;
  /** For tests: fake devices and a fake clock. */
  readonly fakes?: { readonly deviceCount: number; readonly blockBytes: CudaKernels['blockBytes'] };
  readonly connect?: ConnectDevice;
  readonly now?: () => number;
  readonly idleMs?: number;
  readonly pausesMs?: readonly number[];
}

export interface CudaStats {
  /** Queries that the fallback answered at least in part. */
  readonly fallbackQueryCount: number;
  /** Queries among them that a device searched but could not decide. */
  readonly undecidedQueryCount: number;
  /** Queries that a device scanned again because a list of candidates was too short. */
  readonly repeatedQueryCount: number;
  /** Queries that a device answered from coarse codes. */
  readonly coarseQueryCount: number;
  /** Queries that a device answered from head tiles. */
  readonly headQueryCount: number;
  /** Queries for which a device tried either and gave up because too few rows would have been excluded. */
  readonly abandonedQueryCount: number;
  readonly uploadedBytes: number;
  readonly deviceBytes: number;
  /** The number of times a device was lost. */
  readonly lossCount: number;
}

export interface CudaEngine extends Engine {
  stats(): CudaStats;
  /** Describes the devices in use, for an operator. */
  describe(): string;
}

/** Rejects with `EngineUnavailable` if there is no addon or no device, and with another error if no device opens. */
export async function createCudaEngine(options: CudaEngineOptions): Promise<CudaEngine> {
  const { blockBytes, indexes } = await findCudaDevices(options);
  // Events of the start are reported only if at least one device opens.
  const startEvents: CudaEvent[] = [];
  let onEvent = (event: CudaEvent): void => {
    startEvents.push(event);
  };
  const now = options.now ?? (() => performance.now());
  const connect = options.connect ?? connectProcess(options);
  const devices = indexes.map(
    (index) =>
      new CudaDevice({
        index,
        connect,
        deviceMemory: options.deviceMemory ?? null,
        blockBytes,
        onEvent: (event) => onEvent(event),
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
  onEvent = options.onEvent ?? (() => {});
  for (const event of startEvents) onEvent(event);
  return new DevicesEngine(options.fallback, devices, blockBytes);
}

/** Rejects with `EngineUnavailable` and a message for an operator if there is no addon, driver or device. */
export async function findCudaDevices({
  fakes,
  addonPath,
  devices,
}: Pick<CudaEngineOptions, 'fakes' | 'addonPath' | 'devices'>) {
  try {
    const { blockBytes } = fakes ?? loadCudaAddon(addonPath);
    if (devices !== undefined && fakes === undefined) return { blockBytes, indexes: devices };
    const count = fakes?.deviceCount ?? (await listDevices(addonPath)).length;
    if (count === 0) throw new Error('no NVIDIA GPU was found');
    return { blockBytes, indexes: devices ?? Array.from({ length: count }, (_, index) => index) };
  } catch (error) {
    throw new EngineUnavailable(error instanceof Error ? error.message : String(error));
  }
}

/** The queries for one device or for the fallback, each with the views to search there. */
interface DeviceShare {
  /** Null for the fallback. */
  readonly device: CudaDevice | null;
  readonly queries: SearchQuery[];
  /** The index of each query in the batch, and the indexes of its views that are searched there. */
  readonly origins: { readonly query: number; readonly viewIndexes: number[] }[];
}

type OnAnswer = (origin: DeviceShare['origins'][number], hits: SearchHits) => void;

class DevicesEngine implements CudaEngine {
  readonly name = 'cuda';
  readonly batching = BATCHING;
  readonly rowEncoder: RowEncoder | null;
  /** Rows are counted on the CPU, where all of them are. */
  readonly countBefore?: NonNullable<Engine['countBefore']>;
  readonly #fallback: Engine;
  readonly #devices: readonly CudaDevice[];
  readonly #residency: CudaResidency;
  readonly #running = new Set<Promise<unknown>>();
  #fallbackQueryCount = 0;
  #undecidedQueryCount = 0;
  #repeatedQueryCount = 0;
  #coarseQueryCount = 0;
  #headQueryCount = 0;
  #abandonedQueryCount = 0;
  #isClosed = false;

  constructor(
    fallback: Engine,
    devices: readonly CudaDevice[],
    blockBytes: CudaKernels['blockBytes'],
  ) {
    this.rowEncoder = fallback.rowEncoder;
    if (fallback.countBefore !== undefined) {
      this.countBefore = fallback.countBefore.bind(fallback);
    }
    this.#fallback = fallback;
    this.#devices = devices;
    this.#residency = new CudaResidency(devices, blockBytes);
  }

  async search(
    queries: readonly SearchQuery[],
    options: SearchOptions = {},
  ): Promise<SearchHits[]> {
    assert(!this.#isClosed, 'the engine is not closed');
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
    const repeatedQueryCount = this.#repeatedQueryCount;
    const hard = { undecidedQueryCount, repeatedQueryCount };
    const sieved = {
      coarseQueryCount: this.#coarseQueryCount,
      headQueryCount: this.#headQueryCount,
      abandonedQueryCount: this.#abandonedQueryCount,
    };
    return { fallbackQueryCount, ...hard, ...sieved, uploadedBytes, deviceBytes, lossCount };
  }

  describe(): string {
    return this.#devices
      .flatMap(({ facts, placement }) =>
        facts === null || placement === null ? [] : [describeDevice(facts, placement.budgetBytes)],
      )
      .join(', ');
  }

  /** Pending searches are answered by the fallback. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#devices.map((device) => device.close()));
    await Promise.allSettled(this.#running);
    await this.#fallback.close();
  }

  async #search(queries: readonly SearchQuery[], options: SearchOptions): Promise<SearchHits[]> {
    const { signal } = options;
    const abandoned = new Int32Array(new SharedArrayBuffer(4));
    const ignoreAbort = whenAborted(signal, () => Atomics.store(abandoned, 0, 1));
    const pinned = await this.#residency.acquire(queries);
    try {
      signal?.throwIfAborted();
      const partials = queries.map((): PartialHits[] => []);
      const onAnswered: OnAnswer = ({ query, viewIndexes }, hits) => {
        for (let i = 0; i < hits.viewIndexes.length; i++) {
          hits.viewIndexes[i] = viewIndexes[hits.viewIndexes[i]!]!;
        }
        partials[query]!.push(hits);
      };
      const shares = splitByDevice(queries, pinned);
      const searches = shares.map((share) =>
        share.device === null
          ? this.#searchFallback(share, options, onAnswered)
          : this.#searchDevice(share, share.device, pinned, { abandoned, options, onAnswered }),
      );
      // Blocks stay pinned until all searches have ended, even if one fails early.
      const failed = (await Promise.allSettled(searches)).find((one) => one.status === 'rejected');
      if (failed?.status === 'rejected') throw failed.reason;
      return queries.map((query, index) => mergeHits(query, partials[index]!));
    } finally {
      ignoreAbort();
      pinned.release();
    }
  }

  async #searchDevice(
    { queries, origins }: DeviceShare,
    device: CudaDevice,
    pinned: PinnedBlocks,
    {
      abandoned,
      options,
      onAnswered,
    }: {
      abandoned: Int32Array;
      options: SearchOptions;
      onAnswered: OnAnswer;
    },
  ): Promise<void> {
    const rest: DeviceShare = { device: null, queries: [], origins: [] };
    for (const { dimension, indexes: slice } of cutForKernels(queries, BATCH_BOUNDS)) {
      options.signal?.throwIfAborted();
      const batch = packColumns(
        slice.map((index) => queries[index]!),
        dimension,
      );
      const residents = batch.blocks.map(({ key }) => pinned.find(key)?.resident ?? null);
      // The device may have been lost since the queries were split.
      const answer = residents.every((resident) => resident !== null)
        ? await device.search(batch, residents, abandoned)
        : null;
      this.#repeatedQueryCount += answer?.times.repeatedQueryCount ?? 0;
      this.#coarseQueryCount += answer?.times.coarseQueryCount ?? 0;
      this.#headQueryCount += answer?.times.headQueryCount ?? 0;
      this.#abandonedQueryCount += answer?.times.abandonedQueryCount ?? 0;
      for (const [i, index] of slice.entries()) {
        if (answer?.isDecided[i] === 1) {
          onAnswered(origins[index]!, sliceHits(answer, i));
        } else {
          if (answer !== null) this.#undecidedQueryCount++;
          rest.queries.push(queries[index]!);
          rest.origins.push(origins[index]!);
        }
      }
    }
    options.signal?.throwIfAborted();
    if (rest.queries.length > 0) await this.#searchFallback(rest, options, onAnswered);
  }

  async #searchFallback(
    { queries, origins }: DeviceShare,
    options: SearchOptions,
    onAnswered: OnAnswer,
  ): Promise<void> {
    this.#fallbackQueryCount += queries.length;
    const hits = await this.#fallback.search(queries, options);
    for (const [index, origin] of origins.entries()) onAnswered(origin, hits[index]!);
  }
}

/** Groups views by the device that holds their block. Views without rows are left out. */
function splitByDevice(queries: readonly SearchQuery[], pinned: PinnedBlocks): DeviceShare[] {
  const shares = new Map<CudaDevice | null, DeviceShare>();
  const subsetsOf = memoizeByViews((views) => {
    const subsets = new Map<CudaDevice | null, { viewIndexes: number[]; views: BlockView[] }>();
    for (const [viewIndex, view] of views.entries()) {
      if (view.rowCount === 0) continue;
      const device = pinned.find(view.block.key)?.device ?? null;
      const subset = subsets.get(device) ?? { viewIndexes: [], views: [] };
      subsets.set(device, subset);
      subset.viewIndexes.push(viewIndex);
      subset.views.push(view);
    }
    return subsets;
  });
  for (const [query, { views: all, ...rest }] of queries.entries()) {
    for (const [device, { viewIndexes, views }] of subsetsOf(all)) {
      const share = shares.get(device) ?? { device, queries: [], origins: [] };
      shares.set(device, share);
      share.queries.push({ ...rest, views });
      share.origins.push({ query, viewIndexes });
    }
  }
  return [...shares.values()];
}

function describeDevice({ name, kernels, runtimeVersion }: DeviceFacts, bytes: number): string {
  const gibibytes = (bytes / 1024 ** 3).toFixed(1);
  const version = `${Math.floor(runtimeVersion / 1000)}.${Math.floor((runtimeVersion % 1000) / 10)}`;
  return `${kernels} kernels on ${name} with ${gibibytes} GiB for vectors (CUDA ${version})`;
}
