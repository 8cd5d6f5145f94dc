// Writes docs/configuration.md from the table of settings in src/platform/config.ts. Run it after `npm run
// build`.
//
//   node scripts/configuration-docs.mjs            writes
//   node scripts/configuration-docs.mjs --check    fails when the file is not what would be written

import { DEFAULT_LIMITS } from '../dist/src/common/limits.js';
import { describeSettings } from '../dist/src/platform/config.js';
import { writeGenerated } from './generated.mjs';

const isBound = ({ name }) => name in DEFAULT_LIMITS;
const settings = describeSettings();

const text = `# Configuration

Generated from \`src/platform/config.ts\` by \`npm run openapi\`; do not edit.

A setting is read from the command line (\`sagitta serve --port 9000\`), otherwise from the environment
(\`SAGITTA_PORT=9000\`), otherwise the default applies. Settings are validated at startup: an invalid value, or a
variable \`SAGITTA_…\` that is not a setting, stops the server with a message that says what was found and what is
expected.

## Settings

${table(settings.filter((setting) => !isBound(setting)))}

## Limits

\`GET /v1/limits\` returns the limits in effect. An error about a limit states the limit and the value found.

${table(settings.filter(isBound))}
`;

function table(rows) {
  const lines = rows.map(
    ({ variable, option, default: value, unit, expected, help }) =>
      `| \`${variable}\`<br>\`${option}\` | ${defaultOf(value, unit)} | ${cell(help)} Accepted: ${cell(expected)}. |`,
  );
  return ['| setting | default | meaning |', '| --- | --- | --- |', ...lines].join('\n');
}

function defaultOf(value, unit) {
  if (value === '') return 'none';
  return unit === null ? `\`${value}\`` : `\`${value}\` ${unit}`;
}

function cell(value) {
  return value.replaceAll('|', '\\|');
}

writeGenerated('docs/configuration.md', text);
