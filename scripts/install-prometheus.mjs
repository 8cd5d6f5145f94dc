// Installs Prometheus and promtool into build/prometheus for the tests of the alerts. They come from Debian 12, whose
// version is old enough that rules which it accepts work in every version in use, and need only glibc.
//
//   node scripts/install-prometheus.mjs
//   … --if-possible                                on failure, prints one line and exits with 0

import { fileURLToPath } from 'node:url';
import { installDebianPrograms } from './debian-programs.mjs';

installDebianPrograms({
  packageName: 'prometheus',
  suite: 'bookworm',
  programs: ['prometheus', 'promtool'],
  target: fileURLToPath(new URL('../build/prometheus', import.meta.url)),
});
