/** The command `svc list-modules`: lists the directives, matchers, options and other modules of this build. */
import { type Command, EXIT_STATUS } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import { version } from '../command/version.ts';

/** A module as `svc list-modules` prints it. */
interface Module {
	readonly id: string;
	readonly summary: string;
}

/**
 * Endpoint groups of the Admin API, under Caddy's names. A test checks that this server has each of them.
 */
const ADMIN_MODULES: readonly Module[] = [
	{ id: 'admin.api.load', summary: 'Reads and replaces the running configuration.' },
	{ id: 'admin.api.metrics', summary: 'Exports metrics in the Prometheus text format.' },
	{ id: 'admin.api.reverse_proxy', summary: 'Lists the upstreams of the configuration.' },
];

export const listModules: Command = {
	name: 'list-modules',
	summary: 'List the modules of this build',
	details: ['Every module of this build is a standard module, so --skip-standard prints nothing.'],
	options: [
		{ name: 'json', summary: 'Print a JSON array of objects with id, version and summary' },
		{ name: 'versions', summary: "Print each module's version after its name" },
		{ name: 'packages', summary: "Print each module's package after its name; it is always svc" },
		{ name: 'skip-standard', short: 's', summary: 'Omit the standard modules' },
	],
	async run({ flag }) {
		if (flag('skip-standard')) return EXIT_STATUS.ok;
		const modules = await allModules();
		const buildVersion = version();
		if (flag('json')) {
			print(
				`${JSON.stringify(
					modules.map(({ id, summary }) => ({ id, version: buildVersion, summary })),
					undefined,
					2,
				)}\n`,
			);
			return EXIT_STATUS.ok;
		}
		const suffix = `${flag('versions') ? ` ${buildVersion}` : ''}${flag('packages') ? ' svc' : ''}`;
		print(modules.map(({ id }) => `${id}${suffix}\n`).join(''));
		return EXIT_STATUS.ok;
	},
};

/**
 * Returns all modules: handlers, site options, matchers, balancing policies, global options and the Admin API, in lexical order.
 */
async function allModules(): Promise<Module[]> {
	const [
		{ directives },
		{ matchers },
		{ options },
		{ balancers },
		{ lintRules },
		{ issuers },
		{ dnsProviders },
		{ stores },
	] = await Promise.all([
		import('../../compiler/modules/registry/directives.ts'),
		import('../../compiler/modules/registry/matchers.ts'),
		import('../../compiler/modules/registry/options.ts'),
		import('../../compiler/modules/providers/balancers/index.ts'),
		import('../../compiler/lint/index.ts'),
		import('../../compiler/modules/providers/issuers/index.ts'),
		import('../../compiler/modules/providers/dns/index.ts'),
		import('../../compiler/modules/providers/stores/index.ts'),
	]);
	const modulesById = new Map<string, Module>();
	const addModule = (id: string, summary: string): void => {
		if (!modulesById.has(id)) modulesById.set(id, { id, summary });
	};
	for (const directive of directives) {
		if (directive.kind === 'site') addModule(`http.sites.${directive.id}`, directive.summary);
		else if (directive.id !== '') addModule(`http.handlers.${directive.id}`, directive.summary);
	}
	for (const matcher of matchers) addModule(`http.matchers.${matcher.id}`, matcher.summary);
	for (const { id, summary } of balancers) addModule(`http.reverse_proxy.selection_policies.${id}`, summary);
	for (const { id, summary } of issuers) addModule(`tls.issuance.${id}`, summary);
	for (const { id, summary } of dnsProviders) addModule(`dns.providers.${id}`, summary);
	for (const { id, summary } of stores) addModule(`storage.${id}`, summary);
	for (const option of options) addModule(`settings.${option.id}`, option.summary);
	for (const { name, summary } of lintRules) addModule(`lint.${name}`, summary);
	for (const { id, summary } of ADMIN_MODULES) addModule(id, summary);
	return [...modulesById.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}
