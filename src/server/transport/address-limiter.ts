// How many connections one client address may have: whoever opens all that it can leaves others the
// rest. Gateways and this machine itself speak for many clients and are not bounded.

import { BlockList, isIPv6, type Server, type Socket } from 'node:net';

export interface AddressLimiterOptions {
  readonly connectionsMax: number;
  /** Addresses and CIDR blocks of gateways. */
  readonly trustedProxies: readonly string[];
}

export class AddressLimiter {
  readonly #connectionsMax: number;
  readonly #unbounded = new BlockList();
  readonly #counts = new Map<string, number>();

  constructor({ connectionsMax, trustedProxies }: AddressLimiterOptions) {
    this.#connectionsMax = connectionsMax;
    for (const block of ['127.0.0.0/8', '::1', ...trustedProxies]) {
      const [address, prefix] = block.split('/') as [string, string | undefined];
      const family = isIPv6(address) ? 'ipv6' : 'ipv4';
      if (prefix === undefined) this.#unbounded.addAddress(address, family);
      else this.#unbounded.addSubnet(address, Number(prefix), family);
    }
  }

  /** Addresses that have connections and are bounded. */
  get addressCount(): number {
    return this.#counts.size;
  }

  /**
   * Closes connections beyond the bound at once, and tells of them as Node does of those beyond
   * `maxConnections`: by the event `drop`.
   */
  attach(server: Server): void {
    // Before anybody else spends work on it.
    server.prependListener('connection', (socket: Socket) => {
      if (this.#take(socket)) return;
      socket.destroy();
      server.emit('drop');
    });
  }

  #take(socket: Socket): boolean {
    // The client may be gone already.
    if (socket.remoteAddress === undefined) return true;
    const address = plainAddress(socket.remoteAddress);
    const isV6 = isIPv6(address);
    if (this.#unbounded.check(address, isV6 ? 'ipv6' : 'ipv4')) return true;
    const client = isV6 ? networkOf(address) : address;
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

/** Without the zone, and IPv4 as such: a socket that listens for both gives it as ::ffff:192.0.2.1. */
function plainAddress(address: string): string {
  return address.replace(/%.*$/, '').replace(/^::ffff:(?=\d+\.)/i, '');
}

/** The first 64 bits of an IPv6 address: one client has all the addresses that begin with them. */
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
