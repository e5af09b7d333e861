/** Adds the modules of added-modules.ts to the registries when imported, as a line in each registry would. */
import { registerHooks } from 'node:module';

const ADDED_MODULES_URL = new URL('added-modules.ts', import.meta.url).href;

registerHooks({
	load: (url, context, next) => {
		const loaded = next(url, context);
		const registry = /\/compiler\/modules\/registry\/(directives|matchers)\.ts$/.exec(url)?.[1];
		if (registry === undefined) return loaded;
		const added = registry === 'directives' ? 'addedDirectives' : 'addedMatchers';
		const source = String(loaded.source).replace(
			/^(export const (?:directives|matchers): .*\[)$/m,
			`$1\n\t...${added},`,
		);
		return { ...loaded, source: `import { ${added} } from '${ADDED_MODULES_URL}';\n${source}` };
	},
});
