// The examination of GPUs: without a GPU, without the addon, and on emulated GPUs that fail.

import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { renderGpuReport } from '../../../src/cli/commands/doctor.js';
import { examineGpus } from '../../../src/tools/doctor/gpu.js';
import { ADDON, createFaultFile, MISSING_ADDON } from '../../engine/cuda/emulated-devices.js';

/** Long enough for the emulation on a busy machine. */
const deadlines = { openMs: 600_000, callMs: 120_000 };

function setEnvironment(t: TestContext, values: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(values)) {
    process.env[name] = value;
    t.after(() => {
      delete process.env[name];
    });
  }
}

describe('the examination of GPUs', () => {
  it('says how to build the addon when it is missing', async () => {
    const report = await examineGpus({ addonPath: '/no/such/addon.node' });
    assert.equal(report.isUsable, false);
    assert.equal(report.problem, 'the CUDA kernels are not built');
    assert.match(report.advice.join(), /build-kernels\.mjs cuda/);
    const text = renderGpuReport(report).join('\n');
    assert.match(text, /addon.*\(missing\)/);
    assert.match(text, /the CPU answers/);
  });
});

describe('the examination of emulated GPUs', { skip: MISSING_ADDON }, () => {
  it('says so when there is none', async (t) => {
    setEnvironment(t, { SAGITTA_TEST_EMULATED_DEVICES: '0' });
    const report = await examineGpus({ addonPath: ADDON });
    assert.equal(report.problem, 'the driver found no NVIDIA GPU');
    assert.match(report.advice.join(), /nvidia-smi/);
  });

  it('uses mma before compute capability 9.0', async (t) => {
    setEnvironment(t, { SAGITTA_TEST_EMULATED_CAPABILITY: '86' });
    const report = await examineGpus({ addonPath: ADDON, deadlines });
    const [device] = report.devices;
    assert.equal(device!.chosen, 'mma');
    assert.deepEqual(
      device!.checks.map(({ outcome }) => outcome),
      ['not for this GPU', 'passed', 'not for this GPU'],
    );
    assert.match(
      renderGpuReport(report).join('\n'),
      /uses mma: wgmma needs compute capability 9\.0/,
    );
  });

  it('refuses GPUs before compute capability 8.0', async (t) => {
    setEnvironment(t, { SAGITTA_TEST_EMULATED_CAPABILITY: '75' });
    const report = await examineGpus({ addonPath: ADDON, deadlines });
    assert.equal(report.isUsable, false);
    assert.match(
      renderGpuReport(report).join('\n'),
      /not used: compute capability 7\.5 is below 8\.0/,
    );
  });

  it('keeps mma when wgmma faults, which is checked first', async (t) => {
    const faults = createFaultFile(t);
    // Listing makes fewer calls; this launch belongs to the check of wgmma.
    faults.arm('lost-in-kernel launch 9');
    const { devices, isUsable, advice } = await examineGpus({ addonPath: ADDON, deadlines });
    const [device] = devices;
    assert.equal(isUsable, true);
    assert.equal(device!.chosen, 'mma');
    assert.match(device!.checks[0]!.reason!, /illegal/);
    assert.deepEqual(
      device!.checks.map(({ kernels, outcome }) => `${kernels} ${outcome}`),
      ['wgmma failed', 'mma passed', 'wgmma-ring passed'],
    );
    assert.match(advice.join(), /failure of wgmma on GPU 0/);
  });
});
