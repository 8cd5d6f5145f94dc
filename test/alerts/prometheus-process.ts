// A Prometheus process with the configuration in docs/metrics.md and the alerts, all times of which are shortened.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { freePorts } from '../support/free-ports.js';
import { releaseAtEnd } from '../support/leftovers.js';
import { eventually } from '../support/waiting.js';
import { ROOT, RULES, read } from './rule-file.js';

/** Written by scripts/install-prometheus.mjs. */
const INSTALLED = join(ROOT, 'build/prometheus');
const programOf = (name: string) => {
  const path = join(INSTALLED, name);
  return existsSync(path) ? path : name;
};
export const PROMTOOL = programOf('promtool');
const PROMETHEUS = programOf('prometheus');

/** Intervals of scrapes and evaluations. */
const INTERVAL = '500ms';
/** Replaces how long a condition must hold, and the windows of rates, which must contain several scrapes. */
const FOR = '1s';
const WINDOW = '[20s]';

/** Why the tests are skipped; undefined when they can run. */
export function prometheusMissing(): string | undefined {
  const isThere = [PROMTOOL, PROMETHEUS].every(
    (program) => spawnSync(program, ['--version']).status === 0,
  );
  return isThere ? undefined : 'there is no Prometheus; scripts/install-prometheus.mjs installs it';
}

export interface ActiveAlert {
  readonly state: 'pending' | 'firing';
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface PrometheusConfig {
  global: { scrape_interval: string; evaluation_interval: string };
  rule_files: string[];
  scrape_configs: [
    {
      authorization: { credentials_file: string };
      tls_config: { ca_file: string };
      static_configs: [{ targets: string[] }];
    },
  ];
}

export class PrometheusProcess {
  readonly #child: ChildProcess;
  readonly #url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.#url = url;
  }

  /**
   * Scrapes the instance at `target`, host and port.
   *
   * @param folder contains the key in sagitta.key, and the authority of the certificate in sagitta-ca.crt
   */
  static async start(folder: string, target: string): Promise<PrometheusProcess> {
    const data = join(folder, 'prometheus');
    await mkdir(data);
    await writeFile(join(folder, 'sagitta.rules.yaml'), shortened(read(RULES)));
    const config = documentedConfig(folder);
    config.global = { scrape_interval: INTERVAL, evaluation_interval: INTERVAL };
    config.scrape_configs[0].static_configs[0].targets = [target];
    const configFile = join(folder, 'prometheus.yml');
    await writeFile(configFile, stringify(config));
    const checked = spawnSync(PROMTOOL, ['check', 'config', configFile], { encoding: 'utf8' });
    if (checked.status !== 0) throw new Error(checked.stderr);
    const [port] = await freePorts(1);
    const child = spawn(
      PROMETHEUS,
      [
        `--config.file=${configFile}`,
        `--storage.tsdb.path=${data}`,
        `--web.listen-address=127.0.0.1:${port}`,
        '--log.level=error',
      ],
      { stdio: ['ignore', 'inherit', 'inherit'] },
    );
    releaseAtEnd(() => child.kill('SIGKILL'));
    const prometheus = new PrometheusProcess(child, `http://127.0.0.1:${port}`);
    await eventually('Prometheus is ready', async () => {
      if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}`);
      const reply = await fetch(`${prometheus.#url}/-/ready`).catch(() => undefined);
      return reply?.ok === true;
    });
    return prometheus;
  }

  /** The alerts whose condition holds. */
  async alerts(): Promise<ActiveAlert[]> {
    const { alerts } = await this.#get<{ alerts: ActiveAlert[] }>('alerts');
    return alerts;
  }

  /** The values of an expression. */
  async query(expression: string): Promise<string[]> {
    const path = `query?query=${encodeURIComponent(expression)}`;
    const { result } = await this.#get<{ result: { value: [number, string] }[] }>(path);
    return result.map(({ value }) => value[1]);
  }

  /** Waits until the alert fires, and returns it. */
  async whenFiring(name: string): Promise<ActiveAlert> {
    let found: ActiveAlert | undefined;
    await eventually(`${name} fires`, async () => {
      found = (await this.alerts()).find(
        ({ labels, state }) => labels.alertname === name && state === 'firing',
      );
      return found !== undefined;
    });
    return found!;
  }

  async whenResolved(name: string): Promise<void> {
    await eventually(`${name} is resolved`, async () =>
      (await this.alerts()).every(({ labels }) => labels.alertname !== name),
    );
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  async #get<Data>(path: string): Promise<Data> {
    const reply = await fetch(`${this.#url}/api/v1/${path}`);
    const body = (await reply.json()) as { data: Data; error?: string };
    if (!reply.ok) throw new Error(`GET ${path} ended with ${reply.status}: ${body.error}`);
    return body.data;
  }
}

function shortened(rules: string): string {
  return rules.replace(/^( +for:) .+$/gm, `$1 ${FOR}`).replace(/\[\d+[mh]\]/g, WINDOW);
}

/** The configuration in docs/metrics.md, with the paths of its files in `folder`. */
function documentedConfig(folder: string): PrometheusConfig {
  const [, text] = /```yaml\n([^`]*scrape_configs:[^`]*)```/.exec(
    read(join(ROOT, 'docs/metrics.md')),
  )!;
  return parse(text!.replaceAll('/etc/prometheus', folder)) as PrometheusConfig;
}
