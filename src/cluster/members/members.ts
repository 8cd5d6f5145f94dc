// The nodes that are there. Each announces itself several times a second; one that is silent for a while counts as
// gone. Only the clock of the listener is used, and only while it listened: one that was halted has heard nobody, which
// says nothing about the others. Being wrong about a node costs time, never data: what may be written is decided by the
// logs.

import type { SharedService } from '../service/shared-service.js';
import { type AnnouncedSizes, isAnnouncedSizes, NO_SIZES } from './announced-sizes.js';

export interface Member {
  /** The process: another one after each start. */
  readonly instance: string;
  /** As configured; the same after a restart. */
  readonly node: string;
  /** Where other nodes reach its API. */
  readonly url: string;
  readonly version: string;
  /** Where it may fail together with others; empty where that is not configured. */
  readonly zone: string;
  /** `joining`: it does not answer requests yet. `leaving`: another node should take over. */
  readonly state: 'joining' | 'serving' | 'leaving';
  /** That it leads with, in the log of the catalogue; 0 when it does not. */
  readonly epoch: number;
  /** Of how many collections it carries out the writes. */
  readonly collectionCount: number;
  /** How many logs it has taken over from processes that had not released them, by the processes. */
  readonly tookFrom: Readonly<Record<string, number>>;
  /** Of the logs that it owns and that all nodes have, all added up; about a third of a second old. */
  readonly position: number;
  /** False after its store has failed to take what a log has: others had better own the logs. */
  readonly canStore: boolean;
  /** The same of other logs, for each node that has some of them. */
  readonly positions: Readonly<Record<string, number>>;
  /** The moves of collections to this node for which it has brought them in. */
  readonly joined: readonly string[];
  /** The sizes of what the node holds, a moment old. */
  readonly sizes: AnnouncedSizes;
  /** What its monotonic clock showed when it announced itself: greater than in each announcement before. */
  readonly clockMs: number;
}

/** A node of which nothing else is known. */
export function newMember(
  known: Pick<Member, 'instance' | 'node' | 'version' | 'zone' | 'state'>,
): Member {
  return {
    ...known,
    url: '',
    epoch: 0,
    collectionCount: 0,
    tookFrom: {},
    position: 0,
    canStore: true,
    positions: {},
    joined: [],
    sizes: NO_SIZES,
    clockMs: 0,
  };
}

type Measured = Pick<Member, 'position' | 'positions' | 'sizes'>;

type AnnouncementBus = Pick<SharedService, 'announce' | 'onAnnouncement'>;

export interface MembersTiming {
  readonly announceMs: number;
  readonly silentMsMax: number;
}

interface Seen {
  readonly member: Member;
  /** By `listenedMs`. */
  readonly seenAtMs: number;
  /** By the clock of this process. */
  readonly heardAtMs: number;
}

export class Members {
  readonly #bus: AnnouncementBus;
  readonly #timing: MembersTiming;
  /** By instance; without this one. */
  readonly #others = new Map<string, Seen>();
  readonly #onMember: (member: Member) => void;
  readonly #measure: () => Measured;
  #self: Member;
  #timer: NodeJS.Timeout | undefined;
  #listenedMs = 0;
  #tickedAtMs = performance.now();

  constructor(options: {
    readonly bus: AnnouncementBus;
    readonly self: Member;
    readonly timing: MembersTiming;
    /** The logs that this node owns, and what it holds, for each announcement. */
    readonly measure: () => Measured;
    /** Called with every announcement of another node. */
    readonly onMember: (member: Member) => void;
  }) {
    const { bus, self, timing, measure, onMember } = options;
    this.#bus = bus;
    this.#self = self;
    this.#timing = timing;
    this.#onMember = onMember;
    this.#measure = measure;
    bus.onAnnouncement((bytes) => this.#note(bytes));
  }

  start(): void {
    this.#announce();
    this.#tickedAtMs = performance.now();
    this.#timer = setInterval(() => {
      this.#announce();
      const nowMs = performance.now();
      this.#listenedMs += Math.min(nowMs - this.#tickedAtMs, 2 * this.#timing.announceMs);
      this.#tickedAtMs = nowMs;
    }, this.#timing.announceMs).unref();
  }

  /** For how long this process has listened, without times in which it was halted or busy. */
  get listenedMs(): number {
    return this.#listenedMs;
  }

  get self(): Member {
    return this.#self;
  }

  change(change: Partial<Omit<Member, 'instance' | 'node' | 'version'>>): void {
    this.#self = { ...this.#self, ...change };
    this.#announce();
  }

  /** This node and those that were heard of lately, by the names of the nodes. */
  get present(): readonly Member[] {
    const others: Member[] = [];
    for (const [instance, { member, seenAtMs }] of this.#others) {
      if (seenAtMs >= this.#oldestMs) others.push(member);
      else this.#others.delete(instance);
    }
    return [this.#self, ...others].sort((a, b) =>
      a.node === b.node ? compare(a.instance, b.instance) : compare(a.node, b.node),
    );
  }

  find(instance: string): Member | undefined {
    if (instance === this.#self.instance) return this.#self;
    const seen = this.#others.get(instance);
    const isPresent = seen !== undefined && seen.seenAtMs >= this.#oldestMs;
    return isPresent ? seen.member : undefined;
  }

  /** What the clock of a process shows now, by its last announcement; null for one that is not heard of. */
  clockOf(instance: string): number | null {
    const nowMs = performance.now();
    if (instance === this.#self.instance) return nowMs;
    const seen = this.#others.get(instance);
    return seen === undefined ? null : seen.member.clockMs + nowMs - seen.heardAtMs;
  }

  get #oldestMs(): number {
    return this.#listenedMs - this.#timing.silentMsMax;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #announce(): void {
    this.#self = { ...this.#self, ...this.#measure(), clockMs: performance.now() };
    this.#bus.announce(Buffer.from(JSON.stringify(this.#self)));
  }

  #note(bytes: Uint8Array): void {
    const member = decodeMember(bytes);
    if (member === null || member.instance === this.#self.instance) return;
    const known = this.#others.get(member.instance)?.member;
    // Somebody may repeat what a node has announced before.
    if (known !== undefined && member.clockMs <= known.clockMs) return;
    const heardAtMs = performance.now();
    this.#others.set(member.instance, { member, seenAtMs: this.#listenedMs, heardAtMs });
    this.#onMember(member);
  }
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isNumber = (value: unknown): boolean => typeof value === 'number';
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;

const CHECKS: Readonly<Record<keyof Member, (value: unknown) => boolean>> = {
  instance: isText,
  node: isText,
  url: isText,
  version: isText,
  zone: isText,
  state: (value) => value === 'joining' || value === 'serving' || value === 'leaving',
  epoch: isNumber,
  collectionCount: isNumber,
  tookFrom: isObject,
  position: isNumber,
  canStore: (value) => typeof value === 'boolean',
  positions: isObject,
  joined: Array.isArray,
  sizes: isAnnouncedSizes,
  clockMs: isNumber,
};

/** Null for what is no announcement of this version. */
function decodeMember(bytes: Uint8Array): Member | null {
  try {
    const member = JSON.parse(Buffer.from(bytes).toString()) as Record<string, unknown>;
    const isMember = Object.entries(CHECKS).every(([name, isValid]) => isValid(member[name]));
    return isMember ? (member as unknown as Member) : null;
  } catch {
    return null;
  }
}
