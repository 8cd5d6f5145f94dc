// Limits the connections and the resets of HTTP/2 streams per client address, so that one client cannot occupy all
// connections, nor evade the limits of a connection by opening many or by connecting again. Trusted proxies and loopback
// addresses are exempt, since they connect on behalf of many clients.

import { BlockList, isIPv6, type Server, type Socket } from 'node:net';

/**
 * The burst and the sustained rate of resets of one session: opening and resetting streams costs the client nothing and
 * evades the limit of concurrent streams.
 */
export const RESETS_MAX = 200;
const RESETS_PER_SECOND = 20;
/** How many sessions at their limit an address may have, since users may share it. */
const SESSIONS_PER_ADDRESS = 5;
/** Bounds how long new connections of an address are refused: to 40 seconds. */
const ADDRESS_RESETS_COUNTED_MAX = 5 * SESSIONS_PER_ADDRESS * RESETS_MAX;
/** With more addresses, those whose resets have decayed are forgotten. */
const ADDRESSES_KEPT_MAX = 1_000;

/** Counts resets; the count decays at the allowed rate. */
export class ResetCount {
  readonly #perSecond: number;
  readonly #countMax: number;
  readonly #nowMs: () => number;
  #count = 0;
  #atMs = 0;

  constructor(
    nowMs: () => number,
    { perSecond = RESETS_PER_SECOND, countMax = Number.POSITIVE_INFINITY } = {},
  ) {
    this.#nowMs = nowMs;
    this.#perSecond = perSecond;
    this.#countMax = countMax;
  }

  get current(): number {
    const nowMs = this.#nowMs();
    const restored = ((nowMs - this.#atMs) / 1000) * this.#perSecond;
    this.#count = Math.max(0, this.#count - restored);
    this.#atMs = nowMs;
    return this.#count;
  }

  add(count = 1): void {
    this.#count = Math.min(this.#countMax, this.current + count);
  }
}

interface AddressLimiterOptions {
  readonly connectionsMax: number;
  /** Addresses and CIDR blocks. */
  readonly trustedProxies: readonly string[];
  /** Milliseconds of a monotonic clock. */
  readonly nowMs: () => number;
}

export class AddressLimiter {
  readonly #connectionsMax: number;
  readonly #exempt = new BlockList();
  readonly #counts = new Map<string, number>();
  readonly #resets = new Map<string, ResetCount>();
  readonly #nowMs: () => number;

  constructor({ connectionsMax, trustedProxies, nowMs }: AddressLimiterOptions) {
    this.#connectionsMax = connectionsMax;
    this.#nowMs = nowMs;
    for (const block of ['127.0.0.0/8', '::1', ...trustedProxies]) {
      const [address, prefix] = block.split('/') as [string, string | undefined];
      const family = address.includes(':') ? 'ipv6' : 'ipv4';
      if (prefix === undefined) this.#exempt.addAddress(address, family);
      else this.#exempt.addSubnet(address, Number(prefix), family);
    }
  }

  /** The number of non-exempt addresses with open connections. */
  get addressCount(): number {
    return this.#counts.size;
  }

  /** Closes connections beyond the limit at once and emits `drop`, as Node does beyond `maxConnections`. */
  attach(server: Server): void {
    // Runs before other listeners, so that they spend no work on the connection.
    server.prependListener('connection', (socket: Socket) => {
      if (this.#admit(socket)) return;
      socket.destroy();
      server.emit('drop');
    });
  }

  /** The address or network that limits apply to; null if it is exempt, or the client has disconnected already. */
  clientOf(socket: Socket): string | null {
    if (socket.remoteAddress === undefined) return null;
    const address = plainAddress(socket.remoteAddress);
    const isV6 = isIPv6(address);
    if (this.#exempt.check(address, isV6 ? 'ipv6' : 'ipv4')) return null;
    return isV6 ? networkOf(address) : address;
  }

  /**
   * Counts resets of a client over all of its connections. A session that is closed for them counts as `RESETS_MAX`
   * more, because accepting the next one costs a TLS handshake.
   */
  addResets(client: string, count: number): void {
    let resets = this.#resets.get(client);
    if (resets === undefined) {
      if (this.#resets.size >= ADDRESSES_KEPT_MAX) this.#forgetDecayed();
      resets = new ResetCount(this.#nowMs, {
        perSecond: SESSIONS_PER_ADDRESS * RESETS_PER_SECOND,
        countMax: ADDRESS_RESETS_COUNTED_MAX,
      });
      this.#resets.set(client, resets);
    }
    resets.add(count);
  }

  /** Whether the client has reset so many streams that its sessions are closed and new connections refused. */
  isResetting(client: string): boolean {
    return (this.#resets.get(client)?.current ?? 0) > SESSIONS_PER_ADDRESS * RESETS_MAX;
  }

  #forgetDecayed(): void {
    for (const [client, resets] of this.#resets) {
      if (resets.current === 0) this.#resets.delete(client);
    }
  }

  #admit(socket: Socket): boolean {
    const client = this.clientOf(socket);
    if (client === null) return true;
    if (this.isResetting(client)) return false;
    const count = this.#counts.get(client) ?? 0;
    if (count >= this.#connectionsMax) return false;
    this.#counts.set(client, count + 1);
    socket.once('close', () => {
      const left = this.#counts.get(client)! - 1;
      if (left === 0) this.#counts.delete(client);
      else this.#counts.set(client, left);
    });
    return true;
  }
}

/** Removes the zone, and maps IPv4-mapped addresses (::ffff:192.0.2.1) to IPv4. */
function plainAddress(address: string): string {
  return address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
}

/** The /64 network of an IPv6 address, all addresses of which usually belong to one client. */
function networkOf(address: string): string {
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const tailGroups = tail === '' ? [] : tail.split(':');
    while (groups.length + tailGroups.length < 8) groups.push('0');
    groups.push(...tailGroups);
  }
  return groups.slice(0, 4).join(':');
}
