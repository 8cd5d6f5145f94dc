// Simulates the machines of a cluster on one machine: network namespaces on a bridge, between which packets can be lost in
// one direction only, and file systems in memory that can be full. They belong to namespaces of this process, which
// `enterNamespaces` creates, and end with it.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, statfsSync } from 'node:fs';

const ENTERED = 'FAULTS_NAMESPACES';
const NAMESPACES = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
const NETWORK = '10.77.0';
/** The addresses of this process and of the blobs, so that a machine can be cut off from either. */
const DRIVER_HOST = `${NETWORK}.254`;
export const BLOBS_HOST = `${NETWORK}.253`;
/** An address of no network card: packets to it are lost without an error. */
const NOWHERE = '02:00:00:00:00:99';
const DISK_BYTES_MAX = 2 ** 31;
const FILL_ATTEMPTS_MAX = 100;

/** Whether this process has namespaces of its own. */
export const hasNamespaces = process.env[ENTERED] !== undefined;

/** Why there are no machines; undefined when there can be. */
export function machinesMissing(): string | undefined {
  const tried =
    'ip link set lo up && ip link add veth-a type veth peer name veth-b && mount -t tmpfs none /mnt';
  const { status, stderr, error } = spawnSync('unshare', [...NAMESPACES, 'sh', '-c', tried], {
    encoding: 'utf8',
  });
  if (status === 0) return undefined;
  const reason = error?.message ?? stderr.trim().split('\n').at(-1);
  return `network namespaces and mounts need root, unshare and ip (${reason})`;
}

/** Runs this program again in namespaces of its own, and ends with its exit code. */
export async function enterNamespaces(): Promise<never> {
  const child = spawn(
    'unshare',
    [...NAMESPACES, process.execPath, ...process.execArgv, ...process.argv.slice(1)],
    { stdio: 'inherit', env: { ...process.env, [ENTERED]: '1' } },
  );
  // The first process of a namespace ignores signals that it does not handle.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => child.kill('SIGKILL'));
  }
  const [code] = (await once(child, 'exit')) as [number | null];
  process.exit(code ?? 1);
}

export interface Machine {
  readonly name: string;
  readonly host: string;
  /** A prefix for commands that run there. */
  readonly prefix: readonly string[];
}

export class Machines {
  readonly #machines = new Map<string, Machine>();
  /** Processes that hold the namespaces; they end with their input. */
  readonly #holders: ChildProcess[] = [];

  private constructor() {}

  /** Runs a command in the namespaces of this process. */
  static async start(names: readonly string[]): Promise<Machines> {
    const machines = new Machines();
    sh(`ip link set lo up
      ip link add bridge type bridge
      ip addr add ${DRIVER_HOST}/24 dev bridge
      ip addr add ${BLOBS_HOST}/24 dev bridge
      ip link set bridge up`);
    for (const [i, name] of names.entries()) await machines.#add(name, `${NETWORK}.${i + 1}`);
    return machines;
  }

  of(name: string): Machine {
    return this.#machines.get(name)!;
  }

  /** Drops the packets of a machine to an address from now on. */
  cut(from: Machine, host: string): void {
    this.#in(from, `ip neigh replace ${host} lladdr ${NOWHERE} dev eth0 nud permanent`);
  }

  heal(from: Machine, host: string): void {
    this.#in(from, `ip neigh del ${host} dev eth0`);
  }

  stop(): void {
    for (const holder of this.#holders) holder.stdin!.end();
  }

  async #add(name: string, host: string): Promise<void> {
    const holder = spawn('unshare', ['--net', 'sh', '-c', 'echo ready; exec cat'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    this.#holders.push(holder);
    await once(holder.stdout!, 'data');
    const prefix = ['nsenter', '--target', String(holder.pid), '--net'];
    const machine = { name, host, prefix };
    this.#machines.set(name, machine);
    const link = `veth-${name}`;
    sh(`ip link add ${link} type veth peer name eth0 netns ${holder.pid}
      ip link set ${link} master bridge up`);
    this.#in(machine, `ip addr add ${host}/24 dev eth0`);
    this.#in(machine, 'ip link set eth0 up');
    this.#in(machine, 'ip link set lo up');
  }

  #in({ prefix }: Machine, command: string): void {
    sh(`${prefix.join(' ')} ${command}`);
  }
}

/** A file system in memory. */
export class Disk {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
    sh(`mount -t tmpfs -o size=${DISK_BYTES_MAX} none ${folder}`);
  }

  /** Fills the file system. */
  fill(): void {
    for (let attempt = 1; ; attempt++) {
      const { blocks, bfree, bsize } = statfsSync(this.folder);
      try {
        this.#resize((blocks - bfree) * bsize);
        return;
      } catch (error) {
        // Other processes have written meanwhile.
        if (attempt === FILL_ATTEMPTS_MAX) throw error;
      }
    }
  }

  empty(): void {
    this.#resize(DISK_BYTES_MAX);
  }

  unmount(): void {
    sh(`umount --lazy ${this.folder}`);
  }

  #resize(byteCount: number): void {
    sh(`mount -o remount,size=${byteCount} ${this.folder}`);
  }
}

function sh(commands: string): void {
  const { status, stderr } = spawnSync('sh', ['-e', '-c', commands], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${commands}: ${stderr}`);
}
