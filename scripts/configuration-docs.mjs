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

Each setting comes from the command line (\`sagitta serve --port 9000\`), else from the environment
(\`SAGITTA_PORT=9000\`), else it has its default. All are checked at the start: a value that is not
accepted, and a variable \`SAGITTA_…\` that no setting has, end the process with a sentence that says
what was found and what is expected.

## Settings

${table(settings.filter((setting) => !isBound(setting)))}

## Bounds

\`GET /v1/limits\` returns them as they are in force; an error about one says what it is and what was
found.

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
