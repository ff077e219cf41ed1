//! Colours, and what replaces them on terminals without.

use ratatui::style::{Color, Modifier, Style};

use super::part_groups::PartGroup;

#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    colours: bool,
}

impl Theme {
    pub(super) fn new(colours: bool) -> Self {
        Self { colours }
    }

    fn coloured(self, with: Style, without: Style) -> Style {
        if self.colours { with } else { without }
    }

    pub(super) fn title(self, active: bool) -> Style {
        let background = if active { Color::Green } else { Color::DarkGray };
        let foreground = if active { Color::Black } else { Color::White };
        let without = if active {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new().add_modifier(Modifier::UNDERLINED)
        };
        self.coloured(Style::new().fg(foreground).bg(background), without)
    }

    pub(super) fn selected(self, active: bool) -> Style {
        let background = if active { Color::Cyan } else { Color::DarkGray };
        let foreground = if active { Color::Black } else { Color::White };
        let without = if active {
            Style::new().add_modifier(Modifier::REVERSED)
        } else {
            Style::new().add_modifier(Modifier::BOLD)
        };
        self.coloured(Style::new().fg(foreground).bg(background), without)
    }

    pub(super) fn key_name(self) -> Style {
        self.coloured(
            Style::new().fg(Color::Black).bg(Color::Cyan),
            Style::new().add_modifier(Modifier::REVERSED),
        )
    }

    pub(super) fn strong(self) -> Style {
        self.coloured(
            Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD),
            Style::new().add_modifier(Modifier::BOLD),
        )
    }

    pub(super) fn good(self) -> Style {
        self.coloured(Style::new().fg(Color::Green), Style::new())
    }

    pub(super) fn bad(self) -> Style {
        self.coloured(
            Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            Style::new().add_modifier(Modifier::BOLD),
        )
    }

    /// Returns the letter and the style of a group's part of a bar.
    pub(super) fn group(self, group: PartGroup) -> (char, Style) {
        let (letter, colour) = match group {
            PartGroup::Earlier => ('E', Color::Red),
            PartGroup::Commit => ('C', Color::Green),
            PartGroup::Disk => ('D', Color::Blue),
            PartGroup::Journal => ('J', Color::Magenta),
            PartGroup::Locks => ('L', Color::Yellow),
            PartGroup::Other => ('O', Color::Gray),
            PartGroup::Runnable => ('Q', Color::Cyan),
            PartGroup::Running => ('R', Color::DarkGray),
        };
        let text = match group {
            PartGroup::Running | PartGroup::Disk => Color::White,
            _ => Color::Black,
        };
        let style = Style::new().fg(text).bg(colour);
        (letter, self.coloured(style, Style::new()))
    }
}
