/** What a configuration tells of the Admin API, for commands that call a server and send it none. */
import type { AdminSettings } from '../compiler/document/document.ts';
import { TOKEN_VARIABLE } from './admin-client.ts';
import { CommandFailure, type Invocation } from './command.ts';
import { configurationSource, givenPath, readConfiguration } from './configuration.ts';
import { printError } from './terminal.ts';

/**
 * Settings of the file that was named or stands here. A file that is broken and was not named keeps nobody from calling the
 * server: that is a warning. @throws {@link CommandFailure} when the named one is broken
 */
export async function adminSettings(invocation: Invocation): Promise<AdminSettings | undefined> {
	const source = configurationSource(invocation);
	// What the file could tell is known already.
	if (!source || (invocation.value('address') !== undefined && process.env[TOKEN_VARIABLE])) return undefined;
	const { compileConfiguration } = await import('./compilation.ts');
	try {
		return compileConfiguration(await readConfiguration(source)).document.settings?.admin;
	} catch (error) {
		if (!(error instanceof CommandFailure) || givenPath(invocation) !== undefined) throw error;
		printError(`warning: ${error.message} Its address and token are not used.\n`);
		return undefined;
	}
}
