// Import

import { Page } from '../../ui/panel.js';

export default function ImportView() {
  return <Page title="Import">{null}</Page>;
}
