/** The command `svc schema`: prints the JSON Schema of configurations in JSON. */
import { type Command, EXIT_STATUS } from '../command/command.ts';
import { print } from '../command/terminal.ts';

export const schema: Command = {
	name: 'schema',
	summary: 'Print the JSON Schema of configuration documents',
	details: [
		'An editor that knows the schema completes and checks JSON documents: save it to a file, and name that file under `$schema` in the document, or in the settings of the editor. `svc validate` checks more than a schema can express.',
	],
	options: [{ name: 'compact', summary: 'Print it on one line' }],
	async run(invocation) {
		const { exportedSchema } = await import('../../compiler/schema/exported-schema.ts');
		print(`${JSON.stringify(exportedSchema(), undefined, invocation.flag('compact') ? undefined : 2)}\n`);
		return EXIT_STATUS.ok;
	},
};
