// A machine with one node of the cluster: a real ClusterNode with a real Database, on a simulated disk and network. A
// process that ends by itself is started again, like by a supervisor.

import type { Blobs } from '../../../src/cluster/blobs/blobs.js';
import { SealedBlobs } from '../../../src/cluster/blobs/sealed-blobs.js';
import { ClusterNode } from '../../../src/cluster/nodes/cluster-node.js';
import { SagittaError } from '../../../src/common/errors.js';
import { Database } from '../../../src/database/database.js';
import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import { NodeKeys } from '../../../src/platform/node-keys.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { openDatabase } from '../../database/harness.js';
import type { Calls } from './calls.js';
import type { Dice } from './dice.js';
import type { LogServers } from './log-servers.js';
import type { Network } from './network.js';
import { NodeApi, type NodeRequest } from './node-api.js';
import { type Machine, type Scheduler, SimProcess } from './scheduler.js';
import { type BlobFaults, SimulatedBlobs } from './simulated-blobs.js';
import { SimulatedDisk } from './simulated-disk.js';
import { type AnnouncementBus, SimulatedService } from './simulated-service.js';
import type { Trace } from './trace.js';
import { wallClockOf } from './virtual-globals.js';

/** Rows in a segment, few enough that segments are sealed, compacted and copied. */
const SEGMENT_ROWS_MAX = 16;
const START_MS_MIN = 50;
const START_MS_MAX = 1_500;
const RESTART_MS = 1_000;
const LEAVE_MS_MAX = 8_000;
/** Of nodes without a secret. */
const KEYS = new NodeKeys([], 'simulation');

export interface Surroundings {
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly servers: LogServers;
  readonly bus: AnnouncementBus;
  readonly calls: Calls;
  readonly blobs: Blobs;
  readonly blobFaults: BlobFaults;
  readonly trace: Trace;
  /** Bytes written to a log between two snapshots. */
  readonly snapshotBytes: number;
  /** How long a node must be silent before it is replaced. */
  readonly replaceMs: number;
  readonly fail: (what: string) => void;
}

export interface RunningNode {
  readonly node: ClusterNode;
  readonly database: Database;
}

export class SimulatedNode {
  readonly name: string;
  readonly machine: Machine;
  readonly disk: SimulatedDisk;
  /** Null until it serves. */
  running: RunningNode | null = null;
  /** Null while no process exists. */
  process: SimProcess | null = null;
  /** Whether the node is to run. */
  isWanted = false;
  readonly #around: Surroundings;
  readonly #dice: Dice;
  #startCount = 0;

  constructor(name: string, around: Surroundings) {
    this.name = name;
    this.#around = around;
    this.#dice = around.scheduler.dice.for(name);
    this.machine = { name, wallOffsetMs: 0 };
    this.disk = new SimulatedDisk(around.scheduler, this.#dice.for('disk'));
  }

  get url(): string {
    return this.process === null ? '' : `http://${this.process.name}`;
  }

  start(): void {
    this.isWanted = true;
    if (this.process !== null) return;
    const { scheduler, trace, network, servers } = this.#around;
    const count = ++this.#startCount;
    const processName = `${this.name}#${count}`;
    const dice = this.#dice.for(`${count}`);
    const process = new SimProcess(processName, this.machine, dice, scheduler.nowMs);
    this.process = process;
    trace.add(processName, 'starts');
    scheduler.after(dice.between(START_MS_MIN, START_MS_MAX), process, 'start', () => {
      const service = new SimulatedService(
        { scheduler, network, servers, process },
        this.#around.bus,
      );
      this.#run(process, service).catch((error: unknown) => this.#exit(process, error));
    });
  }

  /** Ends the process like SIGKILL. */
  async kill(): Promise<void> {
    this.isWanted = false;
    await this.#end();
  }

  /** Ends the process like SIGTERM. */
  stop(): void {
    this.isWanted = false;
    const { process, running } = this;
    if (process === null) return;
    const { scheduler, trace } = this.#around;
    trace.add(process.name, 'gets SIGTERM');
    if (running === null) {
      void this.#end();
      return;
    }
    scheduler.after(0, process, 'stop', async () => {
      await running.node.leave(LEAVE_MS_MAX);
      await running.node.close();
      await running.database.close();
      scheduler.after(0, scheduler.world, 'exit', () => {
        if (this.process === process) void this.#end();
      });
    });
  }

  /** `isRestarting`: a start is scheduled already. */
  async #end({ isRestarting = false } = {}): Promise<void> {
    const { process } = this;
    if (process === null) return;
    process.isDead = true;
    this.process = null;
    this.running = null;
    const { calls, trace, bus } = this.#around;
    trace.add(process.name, 'is gone');
    bus.remove(process);
    calls.close(process);
    await this.disk.crash();
    // A start was asked for while the process was ending.
    if (this.isWanted && !isRestarting) this.start();
  }

  #exit(process: SimProcess, error: unknown): void {
    if (process.isDead) return;
    const { scheduler, trace, fail, servers } = this.#around;
    const { code, message } = error as { code?: string; message: string };
    trace.add(process.name, `exits: ${code ?? ''} ${message}`);
    const isLasting = code === 'configuration_invalid' || code === 'data_corrupt';
    const mayBeDamaged = code === 'data_corrupt' && servers.hasRotted;
    if ((isLasting && !mayBeDamaged) || !(code !== undefined || isExpected(error))) {
      fail(`${process.name} cannot start: ${(error as Error).stack}`);
    }
    scheduler.after(0, scheduler.world, 'exit', () => {
      if (this.process === process) void this.#end({ isRestarting: true });
    });
    scheduler.after(RESTART_MS, scheduler.world, 'restart', () => {
      if (this.isWanted) this.start();
    });
  }

  async #run(process: SimProcess, service: SimulatedService): Promise<void> {
    const around = this.#around;
    const { scheduler, calls, trace } = around;
    const store = this.disk.open(process);
    const { blobs, blobFaults: faults, network } = around;
    const node = await ClusterNode.open({
      service,
      node: this.name,
      version: '1.0.0',
      store,
      blobs: new SealedBlobs(
        new SimulatedBlobs({ blobs, faults, scheduler, network, process }),
        KEYS,
      ),
      layout: Database.storeLayout,
      snapshotBytes: around.snapshotBytes,
      logger: trace.loggerOf(process.name),
      timing: { replaceMs: around.replaceMs },
    });
    await node.catchUp({
      incarnationsIn: () => Database.incarnationsIn(store),
      isFounded: () => Database.secretIn(store) !== null,
      foundation: Database.foundation,
    });
    const database = await openDatabase({
      store,
      logs: node.logs,
      clock: { now: () => wallClockOf(scheduler) },
      limits: { segmentRowsMax: SEGMENT_ROWS_MAX },
      engine: createReferenceEngine({ pool: createInlinePool() }),
    });
    await node.attach(database);
    const api = new NodeApi({ node, database, calls, process });
    const url = `http://${process.name}`;
    calls.serve(url, { process, handle: (request) => api.handle(request as NodeRequest) });
    node.serve(url);
    this.running = { node, database };
    trace.add(process.name, 'serves');
  }
}

/** Whether a start may fail so while the servers or the disk do. */
function isExpected(error: unknown): boolean {
  const { name, message } = error as Error;
  return (
    error instanceof SagittaError ||
    name === 'TimeoutError' ||
    message.includes('EIO') ||
    message.includes('did not answer')
  );
}
