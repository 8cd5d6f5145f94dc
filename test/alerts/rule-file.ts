// Reads the alerts and their unit tests.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

/** The compiled file is at dist/test. */
export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const RULES = join(ROOT, 'deploy/prometheus/sagitta.rules.yaml');
export const RULE_TESTS = join(ROOT, 'deploy/prometheus/sagitta.rules.test.yaml');

export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface RuleFile {
  readonly groups: readonly { readonly name: string; readonly rules: readonly Alert[] }[];
}

interface RuleTest {
  readonly name: string;
  readonly promql_expr_test: readonly {
    readonly eval_time: string;
    readonly exp_samples: readonly { readonly labels: string }[];
  }[];
}

export const read = (path: string): string => readFileSync(path, 'utf8');

export function readRules(): RuleFile {
  return parse(read(RULES)) as RuleFile;
}

export function readAlerts(): Alert[] {
  return readRules().groups.flatMap(({ rules }) => rules);
}

export function readRuleTests(): readonly RuleTest[] {
  return (parse(read(RULE_TESTS)) as { tests: RuleTest[] }).tests;
}
