// Backups

import { Page } from '../../ui/panel.js';

export default function BackupsView() {
  return <Page title="Backups">{null}</Page>;
}
