/**
 * The Node executable that the product is made of, pinned by its SHA-256 for each platform: node-checksums.json.
 *
 * npm checks the archive of a platform's package against the lock file, but where that fails it leaves the package out
 * without a word, because it is optional on other platforms. So `npm ci` runs this file at its end, `npm run build` at its
 * beginning, with the Node that runs npm: an executable that was tampered with must not judge itself. Hence JavaScript, as
 * that may be a Node without types.
 *
 * Usage: node cli/packaging/pinned-node.js [executable]
 */
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));

/** @type {{ readonly version: string, readonly sha256: { readonly [platform: string]: string | undefined } }} */
const pinned = JSON.parse(readFileSync(path.join(here, 'node-checksums.json'), 'utf8'));

/** The executable that `npm ci` installs. */
export const INSTALLED = path.resolve(here, '../../node_modules/.bin/node');

/**
 * Checks an executable. Rejects with a sentence that says what to do if it is not the pinned one.
 *
 * @param {string} executable Its path.
 * @param {string} [platform] Whose it is.
 * @returns {Promise<void>}
 */
export async function verifyNode(executable, platform = `${process.platform}-${process.arch}`) {
	const expected = pinned.sha256[platform];
	if (expected === undefined) {
		const known = Object.keys(pinned.sha256).join(', ');
		throw new Error(
			`No checksum of Node ${pinned.version} is pinned for ${platform}, only for ${known}; add it to cli/packaging/node-checksums.json.`,
		);
	}
	const hash = createHash('sha256');
	try {
		await pipeline(createReadStream(executable), hash);
	} catch (error) {
		const { code } = /** @type {NodeJS.ErrnoException} */ (error);
		const cause = code === 'ENOENT' ? 'it is not there' : `the system says ${code}`;
		throw new Error(
			`The Node executable ${executable} cannot be read: ${cause}. Run npm ci; if it stays away, what npm received is not what package-lock.json pins.`,
		);
	}
	const found = hash.digest('hex');
	if (found === expected) return;
	throw new Error(
		`${realpathSync(executable)} is not the Node ${pinned.version} for ${platform} that svc is built with: its SHA-256 is ${found}, but ${expected} is pinned in cli/packaging/node-checksums.json. Run npm ci, and start the build with npm run build.`,
	);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
	const executable = process.argv[2];
	const platform = `${process.platform}-${process.arch}`;
	if (executable === undefined && pinned.sha256[platform] === undefined) {
		console.error(`note: no Node is pinned for ${platform}; put Node ${pinned.version} on the PATH.`);
	} else {
		await verifyNode(executable ?? INSTALLED).catch(error => {
			console.error(`error: ${error.message}`);
			process.exitCode = 1;
		});
	}
}
