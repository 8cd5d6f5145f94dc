// All machines of a simulation: nodes, log servers, shared files and clients, on one scheduler.

import type { Blobs } from '../../../src/cluster/blobs/blobs.js';
import { MemoryBlobs } from '../../../src/cluster/blobs/memory-blobs.js';
import { Calls } from './calls.js';
import { LogServers } from './log-servers.js';
import { Network } from './network.js';
import { type Scheduler, SimProcess } from './scheduler.js';
import { BlobFaults } from './simulated-blobs.js';
import { type RunningNode, SimulatedNode, type Surroundings } from './simulated-node.js';
import { AnnouncementBus } from './simulated-service.js';
import { Trace } from './trace.js';

export interface ClusterShape {
  readonly nodes: number;
  readonly snapshotBytes: number;
  readonly replaceMs: number;
}

/** Shared files that remember those which were removed. */
class RememberingBlobs extends MemoryBlobs {
  readonly #files: Map<string, Uint8Array>;

  constructor(files: Map<string, Uint8Array>) {
    super();
    this.#files = files;
  }

  override async put(name: string, parts: readonly Uint8Array[]): Promise<void> {
    if (name.includes('/files/')) this.#files.set(name, Buffer.concat(parts));
    await super.put(name, parts);
  }
}

export class SimulatedCluster {
  readonly scheduler: Scheduler;
  readonly trace: Trace;
  readonly network: Network;
  readonly servers: LogServers;
  readonly calls: Calls;
  /** All files that were ever shared, by their names. */
  readonly files = new Map<string, Uint8Array>();
  readonly blobs: Blobs = new RememberingBlobs(this.files);
  readonly blobFaults = new BlobFaults();
  readonly clients: SimProcess;
  readonly nodes: SimulatedNode[] = [];
  readonly failures: string[] = [];
  readonly #around: Surroundings;

  constructor(scheduler: Scheduler, { nodes, snapshotBytes, replaceMs }: ClusterShape) {
    this.scheduler = scheduler;
    this.trace = new Trace(scheduler);
    this.network = new Network(scheduler);
    this.servers = new LogServers(scheduler);
    this.calls = new Calls(scheduler, this.network);
    const machine = { name: 'clients', wallOffsetMs: 0 };
    this.clients = new SimProcess('clients', machine, scheduler.dice.for('clients'), 0);
    const { network, servers, calls, blobs, blobFaults, trace } = this;
    this.#around = {
      ...{ scheduler, network, servers, calls, blobs, blobFaults, trace },
      ...{ bus: new AnnouncementBus(), snapshotBytes, replaceMs },
      fail: (what) => this.fail(what),
    };
    for (let i = 1; i <= nodes; i++) this.addNode();
  }

  addNode(): SimulatedNode {
    const node = new SimulatedNode(`n${this.nodes.length + 1}`, this.#around);
    this.nodes.push(node);
    node.start();
    return node;
  }

  fail(what: string): void {
    this.trace.add('failure', what);
    this.failures.push(what);
  }

  /** The nodes that serve, with their processes. */
  get serving(): (RunningNode & { readonly name: string; readonly process: SimProcess })[] {
    return this.nodes.flatMap(({ name, running, process }) =>
      running === null || process === null ? [] : [{ ...running, name, process }],
    );
  }

  /** Does something in the process of the node that leads, if one does. Failures do not matter. */
  atLeader(label: string, act: (leader: RunningNode) => Promise<unknown>): void {
    const leader = this.serving.find(({ node, process }) => node.isLeader && !process.isHalted);
    if (leader === undefined) return;
    this.scheduler.after(0, leader.process, label, () => {
      act(leader).catch((error: unknown) => {
        this.trace.add('operator', `${label}: ${(error as Error).message}`);
      });
    });
  }
}
