/**
 * Lets a bundle name modules of Node that are loaded only when one of their exports is used: they take a third of the time that a
 * thread needs to start, and most threads never use most of them. Its text becomes a part of bundles (bundles.ts), so it must not
 * refer to anything outside the function.
 *
 * @param {(name: string) => any} require Node's `require`.
 * @param {{ readonly [module: string]: readonly string[] | undefined }} exportNames The exports of each deferred module.
 * @returns {(name: string) => any} A `require` to use instead.
 */
export function deferModules(require, exportNames) {
	/** @type {Map<string, object>} */
	const modules = new Map();
	return name => {
		const names = exportNames[name.replace('node:', '')];
		if (names === undefined) return require(name);
		const known = modules.get(name);
		if (known) return known;
		/** @type {{ [name: string]: unknown }} */
		const module = {};
		// From the first use on, the exports are ordinary properties.
		const load = () => Object.defineProperties(module, Object.getOwnPropertyDescriptors(require(name)));
		for (const exported of names) {
			Object.defineProperty(module, exported, {
				configurable: true,
				enumerable: true,
				get() {
					load();
					return module[exported];
				},
			});
		}
		modules.set(name, module);
		return module;
	};
}
