// Ports for servers that are started later, or restarted. They are below the range from which the system chooses ports
// for outgoing connections and for servers without a fixed port, because it could take a port that is free only for a
// moment.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

const FIRST = 10_000;
/** The first port of the system's range by default. */
const SYSTEM_FIRST = 32_768;
/** Distance between the ports of test processes, whose process ids are consecutive. */
const APART = 101;

const end = firstOfSystem();
let at = process.pid * APART;

export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = FIRST + (at++ % (end - FIRST));
    if (await isFree(port)) ports.push(port);
  }
  return ports;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}

function firstOfSystem(): number {
  try {
    const [first] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split('\t');
    if (Number(first) > 2 * FIRST) return Number(first);
  } catch {
    // The system is not Linux.
  }
  return SYSTEM_FIRST;
}
