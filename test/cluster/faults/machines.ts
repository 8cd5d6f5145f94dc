// Simulates the machines of a cluster on one machine: network namespaces on a bridge, between which packets can be lost in
// one direction only, and file systems in memory that can be full or frozen. They belong to X

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
/** Free space with which nothing can be written any more. */
const FREE_BYTES_MAX = 100_000;
/** Without blocks for root, which the processes under test may run as. */
const MAKE_FILES = 'mkfs.ext4 -q -F -m 0 -E lazy_itable_init=1';

/**
 * A prefix for a command whose process alone sees a file system of its own in a folder. Its bytes are in a file, which is
 * made unless it exists, so that it outlasts the process.
 */
export function onDisk(
  folder: string,
  { image, byteCount }: { readonly image: string; readonly byteCount: number },
): readonly string[] {
  const made = `test -e ${image} || { truncate -s ${byteCount} ${image} && ${MAKE_FILES} ${image}; }`;
  const mounted = `mkdir -p ${folder} && mount -o loop,discard ${image} ${folder}`;
  return ['unshare', '--mount', 'sh', '-ec', `${made}; ${mounted}; exec "$@"`, 'sh'];
}

/** Why `onDisk` cannot be used; undefined when it can. */
export function disksMissing(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'sagitta-disk-'));
  const image = join(folder, 'image');
  const [command, ...words] = onDisk(join(folder, 'disk'), { image, byteCount: 2 ** 24 });
  const { status, stderr } = spawnSync(command!, [...words, 'true'], { encoding: 'utf8' });
  rmSync(folder, { recursive: true, force: true });
  return status === 0 ? undefined : `mounts need root and loop devices (${stderr.trim()})`;
}

/** Whether this process has namespaces of its own. */
export const hasNamespaces = process.env[ENTERED] !== undefined;

/** Why there are no machines; undefined when there can be. */
export function machinesMissing(): string | undefined {
  const tried = `ip link set lo up && ip link add veth-a type veth peer name veth-b && mount -t tmpfs none /mnt && truncate -s 16M /mnt/i && ${MAKE_FILES} /mnt/i && mkdir /mnt/d && mount -o loop /mnt/i /mnt/d && umount /mnt/d`;
  const { status, stderr, error } = spawnSync('unshare', [...NAMESPACES, 'sh', '-c', tried], {
    encoding: 'utf8',
  });
  if (status === 0) return undefined;
  const reason = error?.message ?? stderr.trim().split('\n').at(-1);
  return `network namespaces and mounts need root, unshare, ip, mkfs.ext4 and loop devices (${reason})`;
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
  /** How often each link is cut at the moment, by sender and address. */
  readonly #cuts = new Map<string, number>();
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

  /** Drops the packets of a machine to an address until it is healed as often as it was cut. */
  cut(from: Machine, host: string): void {
    const link = `${from.name} ${host}`;
    const count = this.#cuts.get(link) ?? 0;
    this.#cuts.set(link, count + 1);
    if (count > 0) return;
    this.#in(from, `ip neigh replace ${host} lladdr ${NOWHERE} dev eth0 nud permanent`);
  }

  heal(from: Machine, host: string): void {
    const link = `${from.name} ${host}`;
    const count = this.#cuts.get(link)! - 1;
    this.#cuts.set(link, count);
    if (count > 0) return;
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

/** A file system of its own, whose device is in memory. */
export class Disk {
  readonly folder: string;
  readonly #device: string;
  #isFrozen = false;

  constructor(folder: string) {
    this.folder = folder;
    this.#device = `${folder}-device`;
    for (const each of [this.folder, this.#device]) mkdirSync(each, { recursive: true });
    const image = join(this.#device, 'image');
    sh(`mount -t tmpfs -o size=${DISK_BYTES_MAX} none ${this.#device}
      truncate -s ${DISK_BYTES_MAX} ${image}
      ${MAKE_FILES} ${image}
      mount -o loop,discard ${image} ${folder}`);
  }

  /** Fills the file system. */
  fill(): void {
    const filler = this.#filler;
    for (let attempt = 1; ; attempt++) {
      const { bfree, bsize } = statfsSync(this.folder);
      try {
        sh(`fallocate -l ${bfree * bsize} ${filler}`);
        return;
      } catch (error) {
        // Some blocks are for the file system itself, and other processes have written meanwhile.
        if (statfsSync(this.folder).bfree * bsize < FREE_BYTES_MAX) return;
        if (attempt === FILL_ATTEMPTS_MAX) throw error;
      }
    }
  }

  empty(): void {
    rmSync(this.#filler, { force: true });
  }

  /** Blocks all writes from now on. The processes that write cannot even be killed. */
  freeze(): void {
    sh(`fsfreeze --freeze ${this.folder}`);
    this.#isFrozen = true;
  }

  thaw(): void {
    if (this.#isFrozen) sh(`fsfreeze --unfreeze ${this.folder}`);
    this.#isFrozen = false;
  }

  unmount(): void {
    this.thaw();
    sh(`umount --lazy ${this.folder}
      umount --lazy ${this.#device}`);
  }

  get #filler(): string {
    return join(this.folder, 'filler');
  }
}

function sh(commands: string): void {
  const { status, stderr } = spawnSync('sh', ['-e', '-c', commands], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${commands}: ${stderr}`);
}
