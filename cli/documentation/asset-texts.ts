/** The texts of the site's style sheet and script. In the binary, the build replaces this module with one that contains them. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

function readAsset(file: string): string {
	return readFileSync(path.join(import.meta.dirname, file), 'utf8');
}

export const ASSET_TEXTS: { readonly style: string; readonly script: string } = {
	style: readAsset('site.css'),
	script: readAsset('site.js'),
};
