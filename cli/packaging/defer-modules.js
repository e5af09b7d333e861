/**
 * Returns a `require` that loads certain modules of Node only when one of their exports is used. Loading them takes a third of
 * the time that a thread needs to start, and most threads never use most of them. The function's text becomes a part of bundles
 * (bundles.ts), so it must not refer to anything outside.
 *
 * @param {(name: string) => any} require Node's `require`.
 * @param {{ readonly [module: string]: readonly string[] | undefined }} exportNames The names of the exports of each deferred
 * module.
 * @returns {(name: string) => any} A `require` to use instead.
 */
export function deferModules(require, exportNames) {
	/** @type {Map<string, object>} */
	const modules = new Map();
	return name => {
		const moduleExportNames = exportNames[name.replace('node:', '')];
		if (moduleExportNames === undefined) return require(name);
		const deferredModule = modules.get(name);
		if (deferredModule) return deferredModule;
		/** @type {{ [name: string]: unknown }} */
		const module = {};
		// After the first use, the exports are ordinary properties.
		const load = () => Object.defineProperties(module, Object.getOwnPropertyDescriptors(require(name)));
		for (const exported of moduleExportNames) {
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
