/** The style sheet and the script of the documentation site. In the binary, the build replaces the texts that this module reads. */
import { rank, wordsOf } from '../manual/ranking.ts';
import { ASSET_TEXTS } from './asset-texts.ts';

export const SITE_STYLE_SHEET: string = ASSET_TEXTS.style;

/**
 * Returns the script. It contains the source text of the functions with which `svc help` ranks results, so that both searches
 * agree.
 */
export function siteScript(): string {
	return `(() => {\n'use strict';\nconst wordsOf = ${wordsOf};\nconst rank = ${rank};\n${ASSET_TEXTS.script}})();\n`;
}
