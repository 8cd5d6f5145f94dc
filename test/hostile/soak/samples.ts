// The resources of a server process seen from outside: memory, descriptors and threads from /proc, its heap from its
// metrics, and the size of its data directory by file length and by allocated bytes.

import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Call } from './workload.js';

export interface Sample {
  /** Seconds since the soak began. */
  readonly seconds: number;
  /** Number of the process, from 0. */
  readonly process: number;
  /** Seconds since the process was ready. */
  readonly processSeconds: number;
  readonly residentBytes: number;
  readonly anonymousBytes: number;
  readonly heapBytes: number;
  readonly descriptors: number;
  readonly threads: number;
  readonly diskBytes: number;
  readonly allocatedBytes: number;
  readonly requestCount: number;
  /** Latencies of the requests that ended since the last sample, by kind. */
  readonly latencies: Readonly<Record<string, { readonly p50: number; readonly p99: number }>>;
  /** Quantile over all requests. */
  readonly p50: number;
  readonly p99: number;
}

const KIB = 1024;
const BLOCK_BYTES = 512;

export function readProcess(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  return {
    residentBytes: field('VmRSS') * KIB,
    anonymousBytes: field('RssAnon') * KIB,
    threads: field('Threads'),
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
  };
}

export async function readHeapBytes(call: Call): Promise<number> {
  const { text } = await call('GET', '/metrics');
  return Number(/^nodejs_heap_used_bytes (\S+)$/m.exec(text)?.[1]);
}

/** Files that are removed meanwhile do not count. */
export function readDisk(directory: string): { diskBytes: number; allocatedBytes: number } {
  let diskBytes = 0;
  let allocatedBytes = 0;
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const found = lstatSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false });
    diskBytes += found?.size ?? 0;
    allocatedBytes += (found?.blocks ?? 0) * BLOCK_BYTES;
  }
  return { diskBytes, allocatedBytes };
}
