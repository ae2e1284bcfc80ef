// Names the search for screen readers.
document.querySelector("[data-md-component=search]").setAttribute("aria-label", "Search");
