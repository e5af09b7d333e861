/**
 * The Node executable that the product is made of, pinned by its SHA-256 for each platform in node-checksums.json.
 *
 * npm checks the archive of a platform's package against the lock file. If the check fails, npm silently leaves the package out,
 * because the package is optional on other platforms. So this file checks the executable at the end of `npm ci` and at the
 * beginning of `npm run build`. It runs in the Node that runs npm, because an executable that was tampered with must not check
 * itself. It is JavaScript because that Node may not be able to run TypeScript.
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
const pinnedNode = JSON.parse(readFileSync(path.join(here, 'node-checksums.json'), 'utf8'));

/** The executable that `npm ci` installs. */
export const INSTALLED_NODE = path.resolve(here, '../../node_modules/.bin/node');

/**
 * Checks an executable. If it is not the pinned one, rejects with a sentence that says what to do.
 *
 * @param {string} executable The path of the executable.
 * @param {string} [platform] The platform that the executable is for.
 * @returns {Promise<void>}
 */
export async function verifyNode(executable, platform = `${process.platform}-${process.arch}`) {
	const expectedHash = pinnedNode.sha256[platform];
	if (expectedHash === undefined) {
		const knownPlatforms = Object.keys(pinnedNode.sha256).join(', ');
		throw new Error(
			`No checksum of Node ${pinnedNode.version} is pinned for ${platform}, only for ${knownPlatforms}; add it to cli/packaging/node-checksums.json.`,
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
	const actualHash = hash.digest('hex');
	if (actualHash === expectedHash) return;
	throw new Error(
		`${realpathSync(executable)} is not the Node ${pinnedNode.version} for ${platform} that svc is built with: its SHA-256 is ${actualHash}, but ${expectedHash} is pinned in cli/packaging/node-checksums.json. Run npm ci, and start the build with npm run build.`,
	);
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
	const executable = process.argv[2];
	const platform = `${process.platform}-${process.arch}`;
	if (executable === undefined && pinnedNode.sha256[platform] === undefined) {
		console.error(`note: no Node is pinned for ${platform}; put Node ${pinnedNode.version} on the PATH.`);
	} else {
		await verifyNode(executable ?? INSTALLED_NODE).catch(error => {
			console.error(`error: ${error.message}`);
			process.exitCode = 1;
		});
	}
}
