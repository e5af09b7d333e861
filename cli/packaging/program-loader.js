/**
 * The script that the binary runs first: loads the chunks of the program (bundles.ts) from the binary's assets. It is JavaScript,
 * because Node runs it without bundling.
 */

const { getRawAsset } = require('node:sea');
const { Script } = require('node:vm');

/**
 * Runs a script that evaluates to a function, and returns that function.
 *
 * @param {string} asset
 * @returns {Function}
 */
function loadFunction(asset) {
	// Scripts are ASCII. V8 ignores a code cache that it cannot use.
	const source = Buffer.from(/** @type {ArrayBuffer} */ (getRawAsset(asset))).toString('latin1');
	const cachedData = new Uint8Array(/** @type {ArrayBuffer} */ (getRawAsset(asset.replace(/js$/, 'cache'))));
	return new Script(source, { filename: `svc-${asset}`, cachedData }).runInThisContext();
}

const requireOfNode = loadFunction('node-modules.js')(require);

/** The chunks that have been loaded, by name. */
const chunks = new Map();

/**
 * Loads a chunk, or a module of Node.
 *
 * @param {string} name
 * @returns {unknown}
 */
function load(name) {
	if (!name.startsWith('./')) return requireOfNode(name);
	const loadedChunk = chunks.get(name);
	if (loadedChunk) return loadedChunk.exports;
	const chunk = { exports: {} };
	chunks.set(name, chunk);
	loadFunction(name.slice(2))(load, chunk, chunk.exports);
	return chunk.exports;
}

load('./main.js');
