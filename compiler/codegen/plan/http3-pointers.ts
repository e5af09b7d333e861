/** Finds the places where a document requests HTTP/3. */
import type { Document } from '../../document/document.ts';
import type { ServerSettings } from '../../document/server-settings.ts';

/** Returns the JSON pointers of the protocol lists that contain `h3`. */
export function http3Pointers({ settings, sites }: Document): string[] {
	const found: string[] = [];
	const servers = (settings?.servers ?? []) as readonly ServerSettings[];
	servers.forEach(({ protocols }, at) => {
		if (protocols?.includes('h3')) found.push(`/settings/servers/${at}/protocols`);
	});
	const names = (bind: readonly unknown[] | undefined): boolean =>
		bind?.some(entry => typeof entry === 'object' && (entry as ServerSettings).protocols?.includes('h3')) ?? false;
	if (names(settings?.default_bind)) found.push('/settings/default_bind');
	sites?.forEach(({ bind }, at) => {
		if (names(bind)) found.push(`/sites/${at}/bind`);
	});
	return found;
}
