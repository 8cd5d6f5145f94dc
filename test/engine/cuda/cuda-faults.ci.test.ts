// The cuda engine when its GPU fails, on an emulated GPU in a process of its own: at the start, while its
// kernels are checked, during uploads and searches, and while it is idle. Answers stay correct, the GPU comes
// back with a clean context, and no process is left behind.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it, type TestContext } from 'node:test';
import { createReferenceEngine } from '../../../src/engine/core/reference-engine.js';
import type { CudaEvent } from '../../../src/engine/cuda/cuda-device.js';
import {
  type CudaEngine,
  type CudaEngineOptions,
  createCudaEngine,
} from '../../../src/engine/cuda/cuda-engine.js';
import { listDevices } from '../../../src/engine/cuda/cuda-link.js';
import { createInlinePool } from '../../../src/platform/pool.js';
import { eventually } from '../../support/waiting.js';
import {
  assertTrueHits,
  bruteForce,
  createQuery,
  createRandom,
  createRandomBlock,
  rowOf,
  SEED,
} from '../blocks.js';
import { ADDON, createFaultFile, MISSING_ADDON } from './emulated-devices.js';

/** Long enough for the emulation on a busy machine, where a call would otherwise seem to hang. */
const PATIENT = { openMs: 600_000, callMs: 120_000 };
/** For faults that hang: a test waits this long. */
const IMPATIENT = { openMs: 600_000, callMs: 15_000 };

async function createCase(t: TestContext, options: Partial<CudaEngineOptions> = {}) {
  const events: CudaEvent[] = [];
  // Unless a test is about wgmma, kernels run without it, because its check takes most of the emulation's time.
  if (options.kernelsName === undefined) options = { ...options, kernelsName: 'mma' };
  const engine = await createCudaEngine({
    addonPath: ADDON,
    devices: [0],
    fallback: createReferenceEngine({ pool: createInlinePool() }),
    onEvent: (event) => events.push(event),
    pausesMs: Array(20).fill(0),
    deadlines: PATIENT,
    heartbeatMs: 600_000,
    ...options,
  });
  t.after(() => engine.close());
  const kinds = () => events.map(({ kind }) => kind);
  return { engine, events, kinds };
}

const random = createRandom(SEED);
const block = createRandomBlock(random, 'random', 300, 16);

async function check(engine: CudaEngine, what: string, searched = block): Promise<void> {
  const query = createQuery(searched, rowOf(searched, 5));
  const [hits] = await engine.search([query]);
  assertTrueHits(hits!, bruteForce(query), `${what}, seed ${SEED}`);
}

/** Searches until the device answers again, in a new process. */
async function waitUntilBack(engine: CudaEngine, kinds: () => string[]): Promise<void> {
  await eventually('the device is back', async () => {
    await check(engine, 'while the device is away');
    return kinds().at(-1) === 'device back';
  });
  const { fallbackQueryCount } = engine.stats();
  await check(engine, 'after the device came back');
  assert.equal(engine.stats().fallbackQueryCount, fallbackQueryCount, 'the device answers');
}

/** Returns the ids of live GPU processes that this process has started. */
function deviceProcesses(parent = process.pid): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const status = readFileSync(`/proc/${name}/stat`, 'utf8');
      const [state, parentId] = status.slice(status.lastIndexOf(')') + 2).split(' ');
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8');
      const isChild = Number(parentId) === parent && state !== 'Z';
      return isChild && /cuda-process|sagitta-gpu/.test(command) ? [Number(name)] : [];
    } catch {
      // The process has ended meanwhile.
      return [];
    }
  });
}

function isAlive(id: number): boolean {
  try {
    process.kill(id, 0);
    return true;
  } catch {
    return false;
  }
}

describe('a GPU that fails', { skip: MISSING_ADDON }, () => {
  console.log(`SAGITTA_TEST_SEED=${SEED}`);

  it('in an upload or a search is replaced by a new process, which gets the rows again', async (t) => {
    const faults = createFaultFile(t);
    const { engine, kinds, events } = await createCase(t, { deadlines: IMPATIENT });
    await check(engine, 'before any fault');
    let [deviceProcess] = deviceProcesses();
    for (const [where, fault] of [
      // The tests of the kernels cover each kind of fault at each call.
      ['search', 'lost-in-kernel launch 2'],
      ['search', 'hang-in-kernel launch 3'],
      ['upload', 'hang call 4'],
      ['upload', 'killed call 5'],
    ] as const) {
      if (where === 'upload') engine.unload(block.key);
      const { lossCount } = engine.stats();
      faults.arm(fault);
      await check(engine, `${fault} in a ${where}`);
      assert.equal(faults.isArmed(), false, `${fault} has happened`);
      assert.ok(engine.stats().lossCount > lossCount, `${fault}: ${JSON.stringify(events)}`);
      await waitUntilBack(engine, kinds);
      assert.ok(engine.bytesUsed(block.key).deviceBytes > 0, 'the rows were uploaded again');
      const [next, ...others] = deviceProcesses();
      assert.deepEqual(others, []);
      assert.notEqual(next, deviceProcess);
      deviceProcess = next;
    }
    process.kill(deviceProcess!, 'SIGKILL');
    await eventually('the device is lost', () => kinds().at(-1) === 'device lost');
    await waitUntilBack(engine, kinds);
    await engine.close();
    assert.deepEqual(deviceProcesses(), [], 'no process is left');
  });

  it('without memory for a launch stays open, and the fallback answers', async (t) => {
    const faults = createFaultFile(t);
    const { engine, kinds } = await createCase(t);
    await check(engine, 'before the fault');
    faults.arm('memory launch 2');
    await check(engine, 'without memory');
    assert.equal(engine.stats().fallbackQueryCount, 1);
    await check(engine, 'with memory again');
    assert.equal(engine.stats().fallbackQueryCount, 1);
    assert.deepEqual([engine.stats().lossCount, kinds()], [0, ['out of memory']]);
  });

  it('of a host that pins no memory answers from pageable memory, with the budget unchanged', async (t) => {
    process.env.SAGITTA_TEST_EMULATED_PINNED_MEMORY = '0';
    t.after(() => delete process.env.SAGITTA_TEST_EMULATED_PINNED_MEMORY);
    const { engine, events } = await createCase(t);
    for (let i = 0; i < 2; i++) await check(engine, 'without pinned memory');
    assert.deepEqual([engine.stats().fallbackQueryCount, engine.stats().lossCount], [0, 0]);
    // A smaller budget would be another event.
    const [event, ...others] = events;
    assert.deepEqual(others, []);
    assert.ok(event?.kind === 'host memory not pinned', JSON.stringify(events));
    assert.ok(event.bytes >= 2 * 8 * 2 ** 20, 'at least both buffers of uploads');
  });

  it('while nobody searches is noticed by the heartbeat', async (t) => {
    const faults = createFaultFile(t);
    const { engine, kinds } = await createCase(t, { heartbeatMs: 20 });
    await check(engine, 'before the fault');
    faults.arm('lost call 1');
    await eventually('the device is lost', () => kinds().join() === 'device lost');
    await waitUntilBack(engine, kinds);
  });

  for (const fault of ['lost', 'killed', 'hang']) {
    it(`at its start (${fault}) fails the start, in time`, async (t) => {
      const faults = createFaultFile(t);
      process.env.SAGITTA_TEST_EMULATED_FAULT = fault;
      process.env.SAGITTA_TEST_EMULATED_FAULT_AT_CALL = '2';
      t.after(() => {
        delete process.env.SAGITTA_TEST_EMULATED_FAULT;
        delete process.env.SAGITTA_TEST_EMULATED_FAULT_AT_CALL;
      });
      const deadlines = { ...PATIENT, openMs: fault === 'hang' ? 1_500 : PATIENT.openMs };
      await assert.rejects(createCase(t, { deadlines }), /illegal|ended|no progress/i);
      assert.equal(faults.isArmed(), false);
      assert.deepEqual(deviceProcesses(), []);
      const listed = listDevices(ADDON, fault === 'hang' ? 1_500 : 600_000);
      if (fault === 'hang') await assert.rejects(listed, /did not answer/);
      else await assert.rejects(listed, /illegal|failed/i);
    });
  }

  it('in the check of wgmma is used with other kernels, in a new process', async (t) => {
    const faults = createFaultFile(t);
    faults.arm('lost-in-kernel launch 5');
    const { engine, events, kinds } = await createCase(t, { kernelsName: null });
    assert.deepEqual(kinds(), ['kernels excluded'], JSON.stringify(events));
    assert.match(engine.describe(), /^mma kernels on emulated device 0/);
    await check(engine, 'without wgmma');
    assert.equal(engine.stats().fallbackQueryCount, 0);
  });

  for (const fault of ['', 'hang call 3']) {
    const when = fault === '' ? 'idle' : 'hanging';
    it(`ends with a service that is killed, while it is ${when}`, async (t) => {
      const faults = createFaultFile(t);
      const service = spawn(process.execPath, ['-e', serviceScript()], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      await once(service.stdout!, 'data');
      const [device] = deviceProcesses(service.pid);
      assert.ok(device !== undefined, 'the service has a GPU process');
      if (fault !== '') {
        faults.arm(fault);
        service.stdin!.write('search\n');
        await eventually('the fault has happened', () => !faults.isArmed());
      }
      service.kill('SIGKILL');
      await once(service, 'exit');
      await eventually('its process has ended', () => !isAlive(device));
    });
  }
});

/** Returns the program of a service whose engine prints a line when it is open, and searches for each line it reads. */
function serviceScript(): string {
  const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  return `
    (async () => {
      const { createCudaEngine } = await import(${url('../../../src/engine/cuda/cuda-engine.js')});
      const { createReferenceEngine } = await import(${url('../../../src/engine/core/reference-engine.js')});
      const { createInlinePool } = await import(${url('../../../src/platform/pool.js')});
      const { createQuery, createRandom, createRandomBlock, rowOf } =
        await import(${url('../blocks.js')});
      const engine = await createCudaEngine({
        addonPath: ${JSON.stringify(ADDON)},
        devices: [0],
        fallback: createReferenceEngine({ pool: createInlinePool() }),
        heartbeatMs: 600_000,
        kernelsName: 'mma',
      });
      const block = createRandomBlock(createRandom(1), 'random', 200, 16);
      process.stdin.on('data', () => engine.search([createQuery(block, rowOf(block, 1))]));
      console.log('open');
    })();`;
}
