/** The lint rule `files/root-too-wide`, which reports a root that is an entire system folder or home folder. */

import { rootsOf } from '../inspection/file-roots.ts';
import type { LintRule } from '../inspection/lint-rule.ts';

const WIDE_FOLDER =
	/^\/(?:|etc|home|root|var|usr|opt|proc|sys|dev|boot|tmp|home\/[^/]+|var\/(?:lib|log|backups|spool))\/?$/;

export const rootTooWide: LintRule = {
	name: 'files/root-too-wide',
	severity: 'warning',
	summary: 'An entire system folder or home folder is served.',
	documentation:
		'Such folders contain keys, databases, logs and configurations. Serve a folder created for the purpose.',
	dependsOn: 'site',
	check: cx => {
		for (const { folder: root, pointer } of rootsOf(cx.walkedDocument)) {
			if (!WIDE_FOLDER.test(root)) continue;
			cx.reportAt(pointer, `\`${root}\` contains much that is not meant to be served.`, { words: root });
		}
	},
};
