/** The commands of `svc`, one line each. A command's file is loaded when the command runs. */
import type { CommandEntry } from '../command/command.ts';

/** Every command, in the order of the help text. */
export const COMMANDS: readonly CommandEntry[] = [
	{ name: 'run', summary: 'Run the server in the foreground', load: async () => (await import('./run.ts')).run },
	{
		name: 'start',
		summary: 'Start the server in the background',
		load: async () => (await import('./start.ts')).start,
	},
	{
		name: 'reload',
		summary: 'Replace the configuration of a running server',
		load: async () => (await import('./reload.ts')).reload,
	},
	{
		name: 'publish',
		summary: 'Publish a configuration for all machines of a cluster',
		load: async () => (await import('./publish.ts')).publish,
	},
	{
		name: 'rollout',
		summary: 'Show, pause, resume or abort the rollout of a published configuration',
		load: async () => (await import('./rollout.ts')).rollout,
	},
	{ name: 'stop', summary: 'Stop a running server gracefully', load: async () => (await import('./stop.ts')).stop },
	{
		name: 'restart',
		summary: 'Replace the process of a running server, without losing a connection',
		load: async () => (await import('./restart.ts')).restart,
	},
	{
		name: 'upgrade',
		summary: 'Replace the program of a running server, without losing a connection',
		load: async () => (await import('./upgrade.ts')).upgrade,
	},
	{
		name: 'validate',
		summary: 'Check a configuration without serving it',
		load: async () => (await import('./validate.ts')).validate,
	},
	{
		name: 'test',
		summary: "Run a configuration's own tests, and show what they cover",
		load: async () => (await import('./test.ts')).test,
	},
	{
		name: 'adapt',
		summary: 'Print the JSON document that a configuration compiles to',
		load: async () => (await import('./adapt.ts')).adapt,
	},
	{
		name: 'import',
		summary: "Translate another server's configuration to a Configfile",
		load: async () => (await import('./import.ts')).importCommand,
	},
	{
		name: 'explain',
		summary: 'Show which site, matchers and handlers a request runs through',
		load: async () => (await import('./explain.ts')).explain,
	},
	{
		name: 'diff',
		summary: 'Show for which requests two configurations behave differently',
		load: async () => (await import('./diff.ts')).diff,
	},
	{ name: 'fmt', summary: 'Format a Configfile or Caddyfile', load: async () => (await import('./fmt.ts')).fmt },
	{
		name: 'language-server',
		summary: 'Serve an editor by the Language Server Protocol (also lsp)',
		load: async () => (await import('./language-server.ts')).languageServer,
	},
	{
		name: 'schema',
		summary: 'Print the JSON Schema of configuration documents',
		load: async () => (await import('./schema.ts')).schema,
	},
	{ name: 'respond', summary: 'Serve one fixed response', load: async () => (await import('./respond.ts')).respond },
	{
		name: 'file-server',
		summary: 'Serve the files of a folder',
		load: async () => (await import('./file-server.ts')).fileServer,
	},
	{
		name: 'reverse-proxy',
		summary: 'Forward requests to upstreams',
		load: async () => (await import('./reverse-proxy.ts')).reverseProxy,
	},
	{
		name: 'hash-password',
		summary: 'Hash a password for `basic_auth`',
		load: async () => (await import('./hash-password.ts')).hashPassword,
	},
	{
		name: 'list-modules',
		summary: 'List the modules of this build',
		load: async () => (await import('./list-modules.ts')).listModules,
	},
	{
		name: 'storage-export',
		summary: 'Export the certificate store as a tar archive',
		load: async () => (await import('./storage-export.ts')).storageExport,
	},
	{
		name: 'storage-import',
		summary: 'Import a tar archive into the certificate store',
		load: async () => (await import('./storage-import.ts')).storageImport,
	},
	{
		name: 'storage-migrate',
		summary: 'Copy the certificate store between a folder and Redis',
		load: async () => (await import('./storage-migrate.ts')).storageMigrate,
	},
	{
		name: 'trust',
		summary: "Add the internal authority's root certificate to this machine's trust stores",
		load: async () => (await import('./trust.ts')).trust,
	},
	{
		name: 'untrust',
		summary: "Remove the internal authority's root certificate from this machine's trust stores",
		load: async () => (await import('./untrust.ts')).untrust,
	},
	{
		name: 'service',
		summary: 'Control the installed systemd unit',
		load: async () => (await import('./service.ts')).service,
	},
	{
		name: 'completion',
		summary: 'Print a completion script for a shell',
		load: async () => (await import('./completion.ts')).completion,
	},
	{
		name: 'manpage',
		summary: 'Write the manual pages to a folder',
		load: async () => (await import('./manpage.ts')).manpage,
	},
	{
		name: 'docs',
		summary: 'Serve the documentation, or write it to a folder',
		load: async () => (await import('./docs.ts')).docs,
	},
	{
		name: 'environ',
		summary: 'Print the environment that the server would inherit',
		load: async () => (await import('./environ.ts')).environ,
	},
	{
		name: 'build-info',
		summary: 'Print version, target and toolchain',
		load: async () => (await import('./build-info.ts')).buildInfo,
	},
	{ name: 'version', summary: 'Print the version', load: async () => (await import('./version.ts')).versionCommand },
	{
		name: 'help',
		summary: 'List the commands and guides, print the help of one, or search the guides',
		load: async () => (await import('./help.ts')).help,
	},
];
