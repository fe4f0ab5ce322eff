"""A group of commands that suggests the nearest one for a mistyped name."""

from __future__ import annotations

import click

from overspill.cli.stderr import suggest_nearest


class CommandGroup(click.Group):
    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}.{suggest_nearest(args[0], known)}")
        return super().resolve_command(ctx, args)
