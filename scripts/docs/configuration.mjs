// Generates docs/configuration.md from the limits and settings. Run `npm run build` first.
//
//   node scripts/docs/configuration.mjs            writes the file
//   node scripts/docs/configuration.mjs --check    fails if the file is out of date

import { DEFAULT_LIMITS } from '../../dist/src/common/limits.js';
import { describeSettings } from '../../dist/src/platform/config.js';
import { writeGenerated } from './generated.mjs';

const isLimit = ({ name }) => name in DEFAULT_LIMITS;
const settings = describeSettings();

const text = `# Configuration

Generated from \`src/platform/settings.ts\` and \`src/common/limits.ts\` by \`npm run openapi\`; do not edit.

A setting is read from the command line (\`sagitta serve --port 9000\`), otherwise from the environment
(\`SAGITTA_PORT=9000\`), otherwise the default applies. Settings are validated at startup: invalid values,
variables \`SAGITTA_…\` that are not settings, and settings that contradict each other stop the server with a
message that names all of them, what was found and what is expected. Variables that Kubernetes sets for a Service
named \`sagitta\`, such as \`SAGITTA_PORT=tcp://10.0.0.1:8484\`, are ignored; the log says so. Secrets are no options of
the command line, which other users of the machine can list: they are read from the environment, or from the file that
the variable with \`_FILE\` at its end names. No message shows them.

## Settings

${table(settings.filter((setting) => !isLimit(setting)))}

## Limits

\`GET /v1/limits\` returns the limits in effect. An error about a limit states the limit and the value found.

${table(settings.filter(isLimit))}
`;

function table(rows) {
  const lines = rows.map(
    ({ variable, option, default: value, unit, expected, help, fileVariable }) =>
      `| \`${variable}\`<br>\`${fileVariable ?? option}\` | ${defaultOf(value, unit)} | ${cell(help)} Accepted: ${cell(expected)}. |`,
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
