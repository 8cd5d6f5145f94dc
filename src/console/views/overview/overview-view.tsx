// Overview

import { Page } from '../../ui/panel.js';

export default function OverviewView() {
  return <Page title="Overview">{null}</Page>;
}
