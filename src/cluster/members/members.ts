// The nodes that are up. Each announces itself several times a second, and counts as gone when it is silent for a while.
// Silence is measured on the clock of the listener, and only while it listened: after a halt, it has heard nobody, which
// says nothing about the others. A mistake costs time, never data, since the logs decide who may write.

import type { ServiceProblem } from '../../common/problems.js';
import { CLUSTER_FORMAT, type WrittenFormat } from '../logs/cluster-format.js';
import type { SharedService } from '../service/shared-service.js';
import { type AnnouncedSizes, isAnnouncedSizes, NO_SIZES } from './announced-sizes.js';

export interface Member {
  /** Identifies the process; different after each start. */
  readonly instance: string;
  /** The configured name; the same after a restart. */
  readonly node: string;
  /** Where other nodes reach its API; empty until it serves. */
  readonly url: string;
  readonly version: string;
  /** Nodes of one zone may fail together; empty if not configured. */
  readonly zone: string;
  /** `joining`: it does not answer requests yet. `leaving`: other nodes should take over its logs. */
  readonly state: 'joining' | 'serving' | 'leaving';
  /** The epoch of the catalogue's log in which it leads; 0 if it does not. */
  readonly epoch: number;
  /** The number of collections whose logs it owns. */
  readonly collectionCount: number;
  /** The number of logs that it has taken over without a release, by the previous owner. */
  readonly takeOverCounts: Readonly<Record<string, number>>;
  /** The sum of the positions of the logs that it owns and all nodes follow, up to a third of a second old. */
  readonly position: number;
  /** False after its store has failed to write the commits of a log, so that other nodes should own the logs. */
  readonly canStore: boolean;
  /** The same sum for logs that only some nodes follow, by node. */
  readonly positions: Readonly<Record<string, number>>;
  /** The moves to this node whose collections it has loaded. */
  readonly joined: readonly string[];
  /** Sizes of the collections that it holds, measured about once a second. */
  readonly sizes: AnnouncedSizes;
  /** What is wrong with it. */
  readonly problems: readonly ServiceProblem[];
  /** Its monotonic clock at the announcement: greater than in each one before. */
  readonly clockMs: number;
}

/** A node of which only this is known. */
export function newMember(
  known: Pick<Member, 'instance' | 'node' | 'version' | 'zone' | 'state'>,
): Member {
  return {
    ...known,
    url: '',
    epoch: 0,
    collectionCount: 0,
    takeOverCounts: {},
    position: 0,
    canStore: true,
    positions: {},
    joined: [],
    sizes: NO_SIZES,
    problems: [],
    clockMs: 0,
  };
}

export interface MembersListener {
  /** Called before each announcement of this node. */
  measure(): Pick<Member, 'position' | 'positions' | 'sizes' | 'problems'>;
  /** Called with each announcement of another node. */
  onMember(member: Member): void;
  /** Called with each announcement that has another format than those of this version. */
  onOtherFormat(stranger: WrittenFormat & { readonly node: string }): void;
}

type AnnouncementBus = Pick<SharedService, 'announce' | 'onAnnouncement'>;

export interface MembersTiming {
  readonly announceMs: number;
  readonly silentMsMax: number;
}

/** How long a silent node is remembered. */
const ABSENT_MS_MAX = 3_600_000;

interface ReceivedMember {
  readonly member: Member;
  /** When it was received, on `listenedMs`. */
  readonly listenedAtMs: number;
  /** The same on the clock of this process. */
  readonly receivedAtMs: number;
}

export class Members {
  readonly #bus: AnnouncementBus;
  readonly #timing: MembersTiming;
  /** The other members, by instance. */
  readonly #others = new Map<string, ReceivedMember>();
  #listener: MembersListener | null = null;
  #self: Member;
  #timer: NodeJS.Timeout | undefined;
  #listenedMs = 0;
  #tickedAtMs = performance.now();

  constructor(options: {
    readonly bus: AnnouncementBus;
    readonly self: Member;
    readonly timing: MembersTiming;
  }) {
    const { bus, self, timing } = options;
    this.#bus = bus;
    this.#self = self;
    this.#timing = timing;
  }

  /** Begins to announce this node, and to listen to the others. */
  start(listener: MembersListener): void {
    this.#listener = listener;
    this.#bus.onAnnouncement((bytes) => this.#receive(bytes));
    this.#announce();
    this.#tickedAtMs = performance.now();
    this.#timer = setInterval(() => {
      this.#announce();
      const nowMs = performance.now();
      this.#listenedMs += Math.min(nowMs - this.#tickedAtMs, 2 * this.#timing.announceMs);
      this.#tickedAtMs = nowMs;
    }, this.#timing.announceMs).unref();
  }

  /** How long this process has listened, without the time that it was halted or busy. */
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

  /** This node and those heard from recently, sorted by node. */
  get present(): readonly Member[] {
    const others: Member[] = [];
    for (const [instance, { member, listenedAtMs }] of this.#others) {
      if (listenedAtMs >= this.#oldestMs) others.push(member);
      else if (listenedAtMs < this.#oldestMs - ABSENT_MS_MAX) this.#others.delete(instance);
    }
    return [this.#self, ...others].sort((a, b) =>
      a.node === b.node ? compare(a.instance, b.instance) : compare(a.node, b.node),
    );
  }

  /** The nodes that are silent although they did not leave, in the order of their names, with the time since. */
  get absent(): readonly { readonly member: Member; readonly silentMs: number }[] {
    const present = new Set(this.present.map(({ node }) => node));
    const newest = new Map<string, ReceivedMember>();
    for (const received of this.#others.values()) {
      const { node } = received.member;
      const known = newest.get(node);
      const isOlder = known !== undefined && known.receivedAtMs > received.receivedAtMs;
      if (!present.has(node) && !isOlder) newest.set(node, received);
    }
    const nowMs = performance.now();
    return [...newest.values()]
      .filter(({ member }) => member.state !== 'leaving')
      .map(({ member, receivedAtMs }) => ({ member, silentMs: nowMs - receivedAtMs }))
      .sort((a, b) => compare(a.member.node, b.member.node));
  }

  find(instance: string): Member | undefined {
    if (instance === this.#self.instance) return this.#self;
    const known = this.#others.get(instance);
    const isPresent = known !== undefined && known.listenedAtMs >= this.#oldestMs;
    return isPresent ? known.member : undefined;
  }

  /** The current monotonic clock of a process, from its last announcement; null for one not heard from. */
  clockOf(instance: string): number | null {
    const nowMs = performance.now();
    if (instance === this.#self.instance) return nowMs;
    const known = this.#others.get(instance);
    const isPresent = known !== undefined && known.listenedAtMs >= this.#oldestMs;
    return isPresent ? known.member.clockMs + nowMs - known.receivedAtMs : null;
  }

  get #oldestMs(): number {
    return this.#listenedMs - this.#timing.silentMsMax;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #announce(): void {
    if (this.#listener === null) return;
    this.#self = { ...this.#self, ...this.#listener.measure(), clockMs: performance.now() };
    const announced = { format: CLUSTER_FORMAT, ...this.#self };
    this.#bus.announce(Buffer.from(JSON.stringify(announced)));
  }

  #receive(bytes: Uint8Array): void {
    const announced = parseAnnouncement(bytes);
    const { format, node, version } = announced;
    if (format !== CLUSTER_FORMAT) {
      const isNode = isText(node) && isText(version) && isNumber(format);
      const stranger = announced as unknown as WrittenFormat & { node: string };
      if (isNode) this.#listener?.onOtherFormat(stranger);
      return;
    }
    const member = toMember(announced);
    if (member === null || member.instance === this.#self.instance) return;
    const known = this.#others.get(member.instance)?.member;
    // An older announcement may be replayed.
    if (known !== undefined && member.clockMs <= known.clockMs) return;
    const receivedAtMs = performance.now();
    this.#others.set(member.instance, { member, listenedAtMs: this.#listenedMs, receivedAtMs });
    this.#listener?.onMember(member);
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
  takeOverCounts: isObject,
  position: isNumber,
  canStore: (value) => typeof value === 'boolean',
  positions: isObject,
  joined: Array.isArray,
  sizes: isAnnouncedSizes,
  problems: Array.isArray,
  clockMs: isNumber,
};

function parseAnnouncement(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    const found: unknown = JSON.parse(Buffer.from(bytes).toString());
    return isObject(found) ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** Null for an announcement that lacks something. */
function toMember({ format, ...member }: Readonly<Record<string, unknown>>): Member | null {
  const isMember = Object.entries(CHECKS).every(([name, isValid]) => isValid(member[name]));
  return isMember ? (member as unknown as Member) : null;
}
