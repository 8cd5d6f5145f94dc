// `sagitta selftest` and `sagitta bench`: their output and exit codes. Also checks that the selftest detects every
// wrong result of an engine.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { describeMachine, renderReport } from '../../src/cli/commands/selftest-report.js';
import type { EngineOptions } from '../../src/engine/choose-engine.js';
import { countBefore } from '../../src/engine/core/count-before.js';
import {
  ENGINE_NAMES,
  type Engine,
  type EngineName,
  type SearchHits,
} from '../../src/engine/core/engine.js';
import { createReferenceEngine } from '../../src/engine/core/reference-engine.js';
import { ProbeError } from '../../src/engine/probe.js';
import { createInlinePool } from '../../src/platform/pool.js';
import { CONTRACT } from '../../src/tools/selftest/contract.js';
import type { ContractCase } from '../../src/tools/selftest/contract-case.js';
import { runContract } from '../../src/tools/selftest/run-contract.js';
import { runSelftest, type SelftestReport } from '../../src/tools/selftest/selftest.js';
import { SEED } from '../engine/blocks.js';
import { makeFolder, run, start } from './command.js';

/** A fast case. */
const QUICK = 'numbers views by their order';

describe('sagitta selftest', () => {
  it('prints the machine, the seed, a row per engine, and what each engine runs on', async () => {
    const { code, stdout, stderr } = await run([
      ...['selftest', '--engine', 'reference', '--engine', 'wasm'],
      ...['--seed', '42', '--threads', '1', '--case', QUICK],
    ]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Sagitta \d+\.\d+\.\d+, Node v\d+/);
    assert.match(stdout, /^seed 42, cases with "numbers views/m);
    assert.match(stdout, /^engine +result +cases +passed +failed +not run +seconds$/m);
    assert.match(stdout, /^reference +passed +1 +1 +0 +0 +\d+\.\d$/m);
    assert.match(stdout, /^wasm +passed +1 +1 +0 +0 +\d+\.\d$/m);
    assert.match(stdout, /^wasm: .*WebAssembly/m);
    assert.match(stdout, /^Passed: reference; wasm\.$/m);
    assert.match(stderr, /^seed 42\nreference {2}1\/1 {2}numbers views .* ok, /);
  });

  it('checks every engine that starts, and reports why the others are skipped', async () => {
    const { code, stdout, stderr } = await run([
      'selftest',
      '--case',
      'reports its name',
      '--json',
    ]);
    assert.equal(code, 0, stderr);
    const report = JSON.parse(stdout) as {
      passed: boolean;
      seed: number;
      machine: { cpu: string };
      engines: {
        engine: string;
        label: string;
        status: string;
        facts: string;
        passed: number;
        cases: unknown[];
      }[];
    };
    assert.equal(report.passed, true);
    assert.ok(report.machine.cpu.length > 0);
    assert.equal(stderr.startsWith(`seed ${report.seed}\n`), true);
    assert.deepEqual(new Set(report.engines.map(({ engine }) => engine)), new Set(ENGINE_NAMES));
    for (const { label, status, facts, passed, cases } of report.engines) {
      assert.ok(status === 'passed' || status === 'skipped', `${label}: ${status}`);
      assert.ok(facts.length > 0, label);
      assert.equal(cases.length, status === 'passed' ? 1 : 0);
      assert.equal(passed, cases.length);
    }
    assert.equal(report.engines.find(({ label }) => label === 'reference')?.status, 'passed');
  });

  it('reports invalid arguments with exit code 2', async () => {
    for (const [args, message] of [
      [['--engine', 'abacus'], /'abacus' is invalid\. Expected one of .*reference/],
      [['--seed', '-1'], /'-1' is invalid\. Expected an integer/],
      [
        ['--case', 'juggles'],
        /--case: no case name contains "juggles"\. The cases are:\n {2}reports its/,
      ],
      [['everything'], /too many arguments/],
    ] as const) {
      const { code, stderr, stdout } = await run(['selftest', ...args]);
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
      assert.equal(stdout, '');
    }
  });
});

describe('an installation without benches and kernels', () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>;
  before(async () => {
    folder = await makeFolder();
    const root = fileURLToPath(new URL('../../..', import.meta.url));
    for (const path of ['dist/app', 'package.json', 'scripts/sagitta.cjs']) {
      await cp(join(root, path), join(folder.path, path), { recursive: true });
    }
    await symlink(join(root, 'node_modules'), join(folder.path, 'node_modules'));
  });
  after(() => folder.remove());

  const runInstalled = (args: readonly string[]) =>
    new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      const program = join(folder.path, 'scripts/sagitta.cjs');
      execFile(process.execPath, [program, ...args], (error, stdout, stderr) => {
        resolve({ code: error?.code ?? 0, stdout, stderr });
      });
    });

  it('skips an engine that does not start, and fails if it was requested by name', async () => {
    const args = ['selftest', '--threads', '1', '--case', 'reports its name'];
    const all = await runInstalled(args);
    assert.equal(all.code, 0, all.stdout);
    assert.match(all.stdout, /^simd +skipped$/m);
    assert.match(all.stdout, /^simd: skipped, .*kernels/m);
    assert.match(all.stdout, /^Passed: .*reference.* Skipped \(not tested\): .*simd/m);

    const named = await runInstalled([...args, '--engine', 'simd', '--engine', 'reference']);
    assert.equal(named.code, 1);
    assert.match(named.stdout, /^simd +FAILED$/m);
    assert.match(named.stdout, /^simd: did not start, .*kernels/m);
    assert.match(named.stdout, /^Failed: simd\. Passed: reference\.$/m);
  });

  it('reports missing benches and where they were expected', async () => {
    const { code, stderr } = await runInstalled(['bench', 'engine']);
    assert.equal(code, 1);
    assert.match(stderr, /^sagitta: this installation contains no benches \(expected .*main/);
  });

  it('passes arguments to a bench and returns its exit code', async () => {
    await mkdir(join(folder.path, 'dist', 'bench'));
    await writeFile(
      join(folder.path, 'dist', 'bench', 'main.js'),
      'console.log(JSON.stringify(process.argv.slice(2))); process.exitCode = 7;',
    );
    const options = ['--full', '--out', 'a folder', '--engine', 'wasm'];
    const { code, stdout } = await runInstalled(['bench', ...options, 'engine', 'rest']);
    assert.deepEqual(JSON.parse(stdout), ['engine', 'rest', ...options]);
    assert.equal(code, 7);
  });
});

it('bench lists the benches and engines, with exit code 2', async () => {
  const bench = await start(['bench', 'abacus']).ended;
  assert.equal(bench.code, 2);
  assert.match(bench.stderr, /unknown bench abacus; expected .*engine/);
  const engine = await start(['bench', '--engine', 'abacus']).ended;
  assert.equal(engine.code, 2);
  assert.match(engine.stderr, /'abacus' is invalid\. Allowed choices are .*reference/);
  const other = await start(['bench', 'filter', '--engine', 'reference']).ended;
  assert.equal(other.code, 2);
  assert.match(other.stderr, /--engine applies only to the bench engine/);
});

/** Wrong results: changes to the first hit. */
const LIES: Readonly<Record<string, (hits: SearchHits) => SearchHits>> = {
  'one bit of a score': (hits) => {
    const scores = hits.scores.slice();
    new Uint8Array(scores.buffer)[0]! ^= 1;
    return { ...hits, scores };
  },
  'one row': (hits) => ({ ...hits, rows: hits.rows.map((row, i) => (i === 0 ? row ^ 1 : row)) }),
  'one part': (hits) => ({
    ...hits,
    viewIndexes: hits.viewIndexes.map((part, i) => (i === 0 ? part + 1 : part)),
  }),
  'the last hit': (hits) => ({
    ...hits,
    viewIndexes: hits.viewIndexes.slice(0, -1),
    rows: hits.rows.slice(0, -1),
    scores: hits.scores.slice(0, -1),
  }),
  'the count of rows': (hits) => ({ ...hits, scannedCount: hits.scannedCount + 1 }),
};

/** Cases without hits. */
const WITHOUT_HITS = ['reports its name', 'returns no results for an empty batch'];

/** Cases that count rows instead of searching. */
const isOfCounts = ({ name }: ContractCase) => /^counts |\bcount whose\b/.test(name);

function createTruthful(): Engine {
  return createReferenceEngine({ pool: createInlinePool() });
}

/** Changes the results selected by `isChosen` among those with hits, numbered from 0. */
function createLiar(lie: (hits: SearchHits) => SearchHits, isChosen: (n: number) => boolean) {
  const engine = createTruthful();
  let count = 0;
  const liar: Engine = {
    name: engine.name,
    rowEncoder: null,
    search: async (queries, options) => {
      const answers = await engine.search(queries, options);
      return answers.map((hits) => (hits.rows.length > 0 && isChosen(count++) ? lie(hits) : hits));
    },
    unload: (key) => engine.unload(key),
    bytesUsed: (key) => engine.bytesUsed(key),
    close: () => engine.close(),
  };
  return liar;
}

describe('the contract', () => {
  for (const [what, lie] of Object.entries(LIES)) {
    it(`is broken in every case with hits by an engine that changes ${what}`, async () => {
      const engine = createLiar(lie, () => true);
      const searches = CONTRACT.filter((one) => !isOfCounts(one));
      const cases = searches.filter(({ name }) => !WITHOUT_HITS.includes(name));
      assert.equal(cases.length, searches.length - WITHOUT_HITS.length);
      const { results } = await runContract({ engine, name: 'reference', seed: SEED, cases });
      const kept = results.filter(({ status }) => status !== 'failed').map(({ name }) => name);
      assert.deepEqual(kept, [], `seed ${SEED}`);
    });

    it(`is broken by an engine that changes ${what} in one answer of a batch of 600`, async () => {
      const engine = createLiar(lie, (n) => n === 100);
      const cases = CONTRACT.filter(({ name }) => name.includes('larger than it searches at once'));
      const { results } = await runContract({ engine, name: 'reference', seed: SEED, cases });
      assert.deepEqual(
        results.map(({ status }) => status),
        ['failed'],
      );
      assert.match(results[0]!.failure!, /query \d+ of 600/);
    });
  }

  it('is broken in every case with counts by an engine that counts a row too many', async () => {
    const pool = createInlinePool();
    const truthful = createTruthful();
    const engine: Engine = {
      ...createLiar(
        (hits) => hits,
        () => false,
      ),
      async countBefore(query, positions, options) {
        const counts = await countBefore({ engine: truthful, pool }, query, positions, options);
        return counts.map((count, i) => (i === 0 ? count + 1 : count));
      },
    };
    const cases = CONTRACT.filter(({ name }) => name.startsWith('counts '));
    assert.ok(cases.length > 0);
    const { results } = await runContract({ engine, name: 'reference', seed: SEED, cases });
    const kept = results.filter(({ status }) => status !== 'failed').map(({ name }) => name);
    assert.deepEqual(kept, [], `seed ${SEED}`);
  });

  it('is broken by an engine with the wrong name', async () => {
    const cases = CONTRACT.filter(({ name }) => name === 'reports its name');
    const options = { engine: createTruthful(), seed: SEED, cases };
    assert.equal((await runContract({ ...options, name: 'simd' })).results[0]!.status, 'failed');
    assert.equal(
      (await runContract({ ...options, name: 'reference' })).results[0]!.status,
      'passed',
    );
  });

  it('is broken by correct answers after which the engine reports a failure', async () => {
    const cases = CONTRACT.filter(({ name }) => name.includes(QUICK));
    const reports = ['its thread died'];
    const { results } = await runContract({
      ...{ engine: createTruthful(), name: 'reference', seed: SEED },
      cases: [...cases, ...cases],
      takeReports: () => reports.splice(0),
    });
    assert.deepEqual(
      results.map(({ status }) => status),
      ['failed', 'passed'],
    );
    assert.match(results[0]!.failure!, /its thread died/);
  });

  it('is broken by an engine that delegates ordinary searches to another engine', async () => {
    let count = 0;
    const { results } = await runContract({
      ...{ engine: createTruthful(), name: 'reference', seed: SEED },
      cases: CONTRACT.filter(
        ({ name }) => name === 'answers ordinary searches without its fallback',
      ),
      countFallbacks: () => count++,
    });
    assert.equal(results.length, 1);
    assert.match(results[0]!.failure!, /the fallback engine answered/);
  });

  it('does not wait for an engine that hangs and does not use it again', async () => {
    const engine: Engine = {
      ...createLiar(LIES['one row']!, () => false),
      search: () => new Promise(() => {}),
    };
    const { results, hangs } = await runContract({
      ...{ engine, name: 'reference', seed: SEED, caseMsMax: 20 },
      cases: CONTRACT.slice(0, 3),
    });
    assert.equal(hangs, true);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['passed', 'failed', 'not_run'],
    );
    assert.match(results[1]!.failure!, /did not end within 0\.02 s/);
  });
});

describe('a selftest of every engine', () => {
  /** Each engine is the reference engine, unless `start` throws or replaces it. */
  const selftest = (
    engines: readonly EngineName[] | null,
    start: (options: EngineOptions) => Engine | undefined,
  ) =>
    runSelftest({
      ...{ engines, seed: SEED, only: 'reports its name', allTargets: false, threadCount: 1 },
      onStart() {},
      onResult() {},
      async create(options) {
        const engine = start(options) ?? { ...createTruthful(), name: options.requested };
        return { engine: engine as Engine, reason: 'requested by name: as it likes', readings: [] };
      },
    });
  const statusOf = ({ engines }: SelftestReport, name: string) =>
    engines.find(({ engine }) => engine === name)?.status;

  it('skips an engine that does not start, and fails one that answers the probe wrongly', async () => {
    const report = await selftest(null, ({ requested }) => {
      if (requested === 'simd') throw new Error('there is no device');
      if (requested === 'wasm') throw new ProbeError('it lies');
      return undefined;
    });
    assert.equal(statusOf(report, 'simd'), 'skipped');
    assert.equal(statusOf(report, 'wasm'), 'failed');
    assert.equal(statusOf(report, 'reference'), 'passed');
    assert.equal(report.passed, false);
    assert.equal(report.engines.find(({ engine }) => engine === 'reference')?.facts, 'as it likes');
  });

  it('does not accept another engine instead of the requested one', async () => {
    const report = await selftest(['simd'], createTruthful);
    assert.equal(statusOf(report, 'simd'), 'failed');
    assert.match(report.engines[0]!.facts, /the reference engine started instead/);
  });

  it('fails an engine that logs an error, even if a fallback answers correctly', async () => {
    const report = await selftest(['reference'], ({ logger }) => {
      logger?.error({ error: 'out of memory' }, 'the device died');
      return undefined;
    });
    assert.equal(report.passed, false);
    assert.match(report.engines[0]!.cases[0]!.failure!, /the device died \(out of memory\)/);
  });
});

it('a report shows failures in a few lines, with the command that reproduces them', () => {
  const long = Array.from({ length: 30 }, (_, line) => `line ${line}`).join('\n');
  const cases = [
    { name: "keeps the caller's arrays", status: 'failed', seconds: 1, failure: long },
    { name: 'reports its name', status: 'passed', seconds: 1, failure: null },
    { name: 'answers', status: 'not_run', seconds: 0, failure: null },
  ] as const;
  const report = {
    engines: [
      {
        engine: 'simd',
        label: 'simd',
        status: 'failed',
        facts: 'avx9',
        fallbackCount: 3,
        cases,
        seconds: 2,
      },
      {
        engine: 'wasm',
        label: 'wasm',
        status: 'skipped',
        facts: 'no\x1b[2J',
        fallbackCount: null,
        cases: [],
        seconds: 0,
      },
    ],
    passed: false,
    hangs: true,
  } as const;
  const text = renderReport(
    { machine: describeMachine('1.2.3'), seed: 7, only: null, report },
    100,
  );
  assert.match(text, /^simd +FAILED +3 +1 +1 +1 +2\.0$/m);
  assert.match(
    text,
    /^ {2}line 11\n {2}and 18 more lines\n {2}\$ sagitta selftest --engine simd --seed 7 /m,
  );
  assert.ok(text.includes(`--case 'keeps the caller'\\''s arrays'`));
  assert.match(text, /^wasm: skipped, no·\[2J$/m);
  assert.match(text, /^Failed: simd\. Skipped \(not tested\): wasm\.$/m);
});
