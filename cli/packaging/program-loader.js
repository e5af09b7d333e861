/**
 * The script that the binary runs first: loads the chunks of the program (bundles.ts) from the binary's assets. It is JavaScript,
 * because Node runs it without bundling.
 */

const { getRawAsset } = require('node:sea');
const { Script } = require('node:vm');

/**
 * Runs a script, and returns its value: a function, or an object with functions.
 *
 * @param {string} asset
 * @returns {any}
 */
function evaluate(asset) {
	// Scripts are ASCII. V8 ignores a code cache that it cannot use.
	const source = Buffer.from(/** @type {ArrayBuffer} */ (getRawAsset(asset))).toString('latin1');
	const cachedData = new Uint8Array(/** @type {ArrayBuffer} */ (getRawAsset(asset.replace(/js$/, 'cache'))));
	return new Script(source, { filename: `svc-${asset}`, cachedData }).runInThisContext();
}

const requireOfNode = evaluate('node-modules.js')(require);
/** @type {{ readonly [chunk: string]: string }} */
const packNames = evaluate('pack-names.js')();

/** The packs that have been loaded, by name. */
const packs = new Map();
/** The chunks that have been loaded, by name. */
const chunks = new Map();

/**
 * Returns the function of a chunk.
 *
 * @param {string} name
 * @returns {Function}
 */
function chunkFunction(name) {
	const packName = packNames[name];
	if (packName === undefined) return evaluate(name.slice(2));
	let pack = packs.get(packName);
	if (pack === undefined) {
		pack = evaluate(packName);
		packs.set(packName, pack);
	}
	return pack[name];
}

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
	chunkFunction(name)(load, chunk, chunk.exports);
	return chunk.exports;
}

// The event loop is empty. Ending the process here spares it from freeing the heap piece by piece.
process.on('beforeExit', () => process.exit());
load('./main.js');
