// Limits the connections per client address, so that one client cannot occupy all of them. Trusted proxies and loopback
// addresses are exempt, since they connect on behalf of many clients.

import { BlockList, isIPv6, type Server, type Socket } from 'node:net';

interface AddressLimiterOptions {
  readonly connectionsMax: number;
  /** Addresses and CIDR blocks. */
  readonly trustedProxies: readonly string[];
}

export class AddressLimiter {
  readonly #connectionsMax: number;
  readonly #exempt = new BlockList();
  readonly #counts = new Map<string, number>();

  constructor({ connectionsMax, trustedProxies }: AddressLimiterOptions) {
    this.#connectionsMax = connectionsMax;
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

  #admit(socket: Socket): boolean {
    // The client may have disconnected already.
    if (socket.remoteAddress === undefined) return true;
    const address = plainAddress(socket.remoteAddress);
    const isV6 = isIPv6(address);
    if (this.#exempt.check(address, isV6 ? 'ipv6' : 'ipv4')) return true;
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
